// describe: what a replica serves and within which bounds, for Replica/Describe.
// Thread: any.
#pragma once

namespace inference {
class DescribeResponse;
}

namespace sluice {

struct ReplicaContext;

void describe(const ReplicaContext& replica, inference::DescribeResponse& out);

}  // namespace sluice
