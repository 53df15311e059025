"""Certificates for tests: an authority, and a certificate that it signed."""

from __future__ import annotations

import datetime as dt
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from rekindle.wire import TlsFiles

_LOOPBACK_NAMES = x509.SubjectAlternativeName(
    [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
)


def make_files(folder: Path) -> TlsFiles:
    """An authority, and a certificate of it for this machine's loopback interface."""
    folder.mkdir()
    authority_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    authority = _signed("authority", authority_key, "authority", authority_key, is_authority=True)
    certificate = _signed("host", key, "authority", authority_key, is_authority=False)
    (folder / "authority.pem").write_bytes(authority.public_bytes(serialization.Encoding.PEM))
    (folder / "certificate.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    (folder / "key.pem").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return TlsFiles(*(str(folder / f"{name}.pem") for name in ("certificate", "key", "authority")))


def _signed(
    name: str,
    key: ec.EllipticCurvePrivateKey,
    issuer: str,
    issuer_key: ec.EllipticCurvePrivateKey,
    is_authority: bool,
) -> x509.Certificate:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)]))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
        .add_extension(_LOOPBACK_NAMES, critical=False)
        .sign(issuer_key, hashes.SHA256())
    )
