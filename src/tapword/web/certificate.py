"""A certificate of one's own, for the phone in the same network."""

import datetime
import ipaddress
import os
import ssl
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tapword.errors import MissingExtra

VALID_DAYS = 30


def self_signed(names: Iterable[str]) -> tuple[bytes, bytes, str]:
    """Make a certificate for names and addresses, signed by itself.

    Returns
    -------
    tuple
        Certificate and key as PEM, and the certificate's SHA-256 fingerprint, by which a person
        can tell it from another.
    """
    try:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
    except ImportError as error:
        raise MissingExtra("--tls-self-signed", "cryptography", "web") from error
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "tapword studio")])
    now = datetime.datetime.now(datetime.UTC)
    others = [_general_name(name) for name in dict.fromkeys(names)]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=VALID_DAYS))
        .add_extension(x509.SubjectAlternativeName(others), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(key, hashes.SHA256())
    )
    return (
        certificate.public_bytes(serialization.Encoding.PEM),
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ),
        certificate.fingerprint(hashes.SHA256()).hex(":").upper(),
    )


def context(certificate: bytes, key: bytes) -> ssl.SSLContext:
    """Server side of TLS; the key lies in a file of this user alone while it is read, then never.

    Python reads certificates and keys from files only.
    """
    result = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.TemporaryDirectory() as folder:
        for name, content in (("certificate.pem", certificate), ("key.pem", key)):
            path = Path(folder) / name
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
        result.load_cert_chain(Path(folder) / "certificate.pem", Path(folder) / "key.pem")
    return result


def _general_name(name: str) -> Any:
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)
