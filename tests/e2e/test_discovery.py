"""What a person finds out with grpcurl and the standard services: reflection, health, channelz."""

import json
import subprocess

import pytest
from grpc_channelz.v1 import channelz_pb2, channelz_pb2_grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from harness import bytes_field


def grpcurl(address: str, *arguments: str, data: str | None = None) -> str:
    line = ["grpcurl", "-plaintext", *(["-d", data] if data else []), address, *arguments]
    return subprocess.run(line, capture_output=True, text=True, check=True).stdout


def test_list_shows_every_service(replica):
    services = grpcurl(replica.address, "list").split()
    assert {"inference.LLM", "inference.Replica", "grpc.health.v1.Health", "grpc.channelz.v1.Channelz"} <= set(services)
    assert any(name.startswith("grpc.reflection.") for name in services)


def test_describe_shows_the_contract(replica):
    described = grpcurl(replica.address, "describe", "inference.LLM")
    assert "rpc Generate ( .inference.GenerateRequest ) returns ( stream .inference.GenerateResponse );" in described
    message = grpcurl(replica.address, "describe", "inference.GenerateRequest")
    for field in ("string model = 1;", "repeated .inference.Message messages = 2;", "optional float temperature = 3;"):
        assert field in message


@pytest.mark.parametrize("method", ["inference.LLM/Generate", "inference.LLM.Generate"])
def test_generate_answers(replica, method):
    request = {
        "model": "local",
        "messages": [{"role": "user", "content": bytes_field("Name the capital city of France.")}],
        "max_tokens": 8,
        "temperature": 0,
    }
    answer = grpcurl(replica.address, method, data=json.dumps(request))
    assert '"done": true' in answer and "FINISH_REASON_" in answer


@pytest.mark.parametrize("service", ["", "inference.LLM", "inference.Replica"])
def test_health_is_serving(replica, service):
    answer = grpcurl(replica.address, "grpc.health.v1.Health/Check", data=json.dumps({"service": service}))
    assert json.loads(answer) == {"status": "SERVING"}


def test_health_watch_tells_the_state_at_once(replica):
    watch = health_pb2_grpc.HealthStub(replica.channel()).Watch(health_pb2.HealthCheckRequest(service="inference.LLM"))
    assert next(watch).status == health_pb2.HealthCheckResponse.SERVING
    watch.cancel()


def test_channelz_shows_the_server_and_its_calls(replica):
    stub = channelz_pb2_grpc.ChannelzStub(replica.channel())
    servers = stub.GetServers(channelz_pb2.GetServersRequest(start_server_id=0)).server
    assert any(server.data.calls_started > 0 for server in servers)
