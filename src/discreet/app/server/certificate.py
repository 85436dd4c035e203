"""A certificate for a server that has none yet: self-signed, for loopback and trials."""

from __future__ import annotations

import datetime
import ipaddress
import os
from pathlib import Path

__all__ = ["make_certificate"]


def make_certificate(
    folder: str | Path, *, host: str = "localhost", days: int = 365
) -> tuple[Path, Path]:
    """Write `server.crt` and `server.key`, readable by the owner alone, and return their paths."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
    now = datetime.datetime.now(datetime.UTC)
    names = [x509.DNSName(host), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(minutes=5))
        .not_valid_after(now + datetime.timedelta(days=days))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True, mode=0o700)
    crt, private = place / "server.crt", place / "server.key"
    _write(crt, certificate.public_bytes(serialization.Encoding.PEM))
    _write(
        private,
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ),
    )
    return crt, private


def _write(path: Path, content: bytes) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "wb") as file:
        os.fchmod(handle, 0o600)  # also where the file was there with other permissions
        file.write(content)
