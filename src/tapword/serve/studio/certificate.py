"""TLS for the studio: a self-signed certificate, or one from files."""

import datetime
import os
import ssl
import stat
import tempfile
from collections.abc import Iterable
from pathlib import Path

from tapword.errors import InputError, MissingExtra
from tapword.serve.addresses import ip_address

VALID_DAYS = 30


def self_signed(names: Iterable[str]) -> tuple[bytes, bytes, str]:
    """Make a self-signed certificate for names and addresses.

    Gives the certificate and its key as PEM, and its SHA-256 fingerprint, for people to compare.
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
    addresses = {name: ip_address(name) for name in names}
    others = [x509.IPAddress(ip) if ip else x509.DNSName(name) for name, ip in addresses.items()]
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
    """Make a TLS context of a server.

    Python reads keys from files only, so the key is in a private file for a moment.
    """
    result = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.TemporaryDirectory() as folder:
        for name, content in (("certificate.pem", certificate), ("key.pem", key)):
            path = Path(folder) / name
            path.touch(0o600, exist_ok=False)
            path.write_bytes(content)
        result.load_cert_chain(Path(folder) / "certificate.pem", Path(folder) / "key.pem")
    return result


def read(certificate_path: Path, key_path: Path) -> ssl.SSLContext:
    """Make a TLS context of a server from a certificate and key in files."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        open_to_all = os.name == "posix" and key_path.stat().st_mode & stat.S_IROTH
        # Without this, OpenSSL would ask for a passphrase on the terminal.
        context.load_cert_chain(certificate_path, key_path, password=lambda: b"")
    except (OSError, ValueError) as error:
        raise InputError(
            f"{certificate_path} and {key_path} cannot be used for TLS; give a certificate and its "
            f"key without a passphrase, both PEM: {error}"
        ) from error
    if open_to_all:
        raise InputError(f"all users can read the key {key_path}: chmod 600 {key_path}")
    return context
