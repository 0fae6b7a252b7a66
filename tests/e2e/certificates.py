"""Certificates of the tests' own, made by openssl."""

import pathlib
import subprocess


def openssl(*arguments: str) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)


class Authority:
    """A certificate authority of the test's own."""

    def __init__(self, folder: pathlib.Path, name: str):
        self.folder = folder
        self.certificate, self.key = folder / f"{name}.pem", folder / f"{name}.key"
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                "-subj", f"/CN={name}", "-keyout", str(self.key), "-out", str(self.certificate))  # fmt: skip

    def issue(self, name: str) -> tuple[pathlib.Path, pathlib.Path]:
        certificate, key = self.folder / f"{name}.pem", self.folder / f"{name}.key"
        request, extensions = self.folder / f"{name}.csr", self.folder / f"{name}.ext"
        extensions.write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", f"/CN={name}",
                "-keyout", str(key), "-out", str(request))  # fmt: skip
        openssl("x509", "-req", "-in", str(request), "-CA", str(self.certificate), "-CAkey", str(self.key), "-CAcreateserial",
                "-days", "1", "-extfile", str(extensions), "-out", str(certificate))  # fmt: skip
        return certificate, key
