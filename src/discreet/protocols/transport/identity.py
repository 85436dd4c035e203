"""Who a party is: a private key and the self-signed certificate that the others pin."""

from __future__ import annotations

import dataclasses
import datetime
import hashlib
import ipaddress
import os
import re
import ssl
from collections.abc import Mapping, Sequence
from pathlib import Path

from discreet.data.atomic import atomic_file
from discreet.errors import InputError

__all__ = [
    "Identity",
    "certificate_pin",
    "read_certificate",
    "read_certificates",
    "write_certificate",
]

#: What may stand in a certificate, and names a file in the folder that was said, and no other.
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,62}")


@dataclasses.dataclass(frozen=True)
class Identity:
    """The certificate of a party and the file of its private key.

    Examples
    --------
    >>> import tempfile
    >>> identity = Identity.new(tempfile.mkdtemp(), "hospital-a")
    >>> identity.certificate.name, identity.pin[:7], len(identity.pin)
    ('hospital-a.crt', 'sha256:', 71)
    """

    certificate: Path
    key: Path

    @classmethod
    def new(cls, folder: str | Path, name: str, *, days: int = 730) -> Identity:
        """Write a new key and its certificate into a folder; never over old ones."""
        if not _NAME.fullmatch(name):
            raise InputError(
                f"{name!r} is no name of a party",
                code="name-malformed",
                hint="use letters without accents, digits, points, hyphens and underscores, at most 63",
            )
        place = Path(folder)
        for path in (place / f"{name}.crt", place / f"{name}.key"):
            if os.path.lexists(path):  # a link that leads nowhere, too: it is not ours
                raise InputError(
                    f"{path} exists, and a key that is overwritten is lost",
                    code="key-exists",
                    hint="choose another name, or move the old key away",
                    file=path,
                )
        return cls(*write_certificate(place, stem=name, host=name, days=days))

    @classmethod
    def read(cls, certificate: str | Path, key: str | Path) -> Identity:
        """Return the identity in two files, or say what is wrong with them."""
        read_certificate(certificate)
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key)
        except OSError as error:
            raise InputError(
                f"{key} is not the key of the certificate {certificate}",
                code="key-not-found",
                hint="write both with: discreet key new --for party NAME",
                file=key,
            ) from error
        return cls(Path(certificate), Path(key))

    @property
    def pin(self) -> str:
        """What others write down to know this party again."""
        return certificate_pin(read_certificate(self.certificate))


def certificate_pin(pem: str) -> str:
    """Return the pin of a certificate: the SHA-256 of its DER form."""
    return pin_of(ssl.PEM_cert_to_DER_cert(pem))


def pin_of(der: bytes) -> str:
    """Return the pin of a certificate in DER form."""
    return "sha256:" + hashlib.sha256(der).hexdigest()


def read_certificate(file: str | Path) -> str:
    """Return the one certificate that a file holds, as PEM text."""
    from cryptography import x509

    try:
        pem = Path(file).read_text(encoding="ascii")
        x509.load_pem_x509_certificate(pem.encode())
        ssl.PEM_cert_to_DER_cert(pem)  # nothing else in the file
    except OSError:
        raise InputError(
            f"there is no certificate {file}",
            code="certificate-not-found",
            hint="ask the party for the .crt file that `discreet key new --for party` wrote",
            file=file,
        ) from None
    except ValueError:
        raise InputError(
            f"{file} does not hold one certificate in PEM form",
            code="certificate-malformed",
            hint="ask the party for the .crt file that `discreet key new --for party` wrote",
            file=file,
        ) from None
    return pem.strip() + "\n"


def read_certificates(folder: str | Path, files: Mapping[str, str]) -> dict[str, str]:
    """Return the certificates of several parties, by name, each with a key of its own.

    Whoever holds one key for two parties is both: two nodes that are one see everything.
    """
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    found = {name: read_certificate(Path(folder) / file) for name, file in files.items()}
    held: dict[bytes, str] = {}
    for name, pem in found.items():
        key = x509.load_pem_x509_certificate(pem.encode()).public_key()
        said = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        if said in held:
            raise InputError(
                f"the parties {held[said]!r} and {name!r} have the same key",
                code="key-shared",
                hint="write a key for each with: discreet key new --for party NAME",
                file=files[name],
            )
        held[said] = name
    return found


def write_certificate(
    folder: str | Path,
    *,
    stem: str,
    host: str,
    days: int,
    addresses: Sequence[str] = ("127.0.0.1",),
) -> tuple[Path, Path]:
    """Write a new P-256 key and a self-signed certificate, readable by the owner alone."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
    now = datetime.datetime.now(datetime.UTC)
    names: list[x509.GeneralName] = [x509.DNSName(host)]
    names += [x509.IPAddress(ipaddress.ip_address(address)) for address in addresses]
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
    crt, private = place / f"{stem}.crt", place / f"{stem}.key"
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
    with atomic_file(path, private=True) as file:  # a link there is replaced, never followed
        file.write_bytes(content)
