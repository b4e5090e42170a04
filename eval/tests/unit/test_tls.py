"""Only what speaks TLS loads certificates: that takes 22 ms, a twelfth of the start of a run."""

from memconform.tls import tls_context


def _authorities(address: str) -> int:
    return tls_context(address).cert_store_stats()["x509_ca"]


def test_a_server_with_tls_is_verified() -> None:
    assert _authorities("https://daemon.test:8080") > 0
    assert _authorities("HTTPS://daemon.test") > 0
    assert tls_context("https://daemon.test").check_hostname


def test_no_certificate_is_loaded_for_a_server_without_tls() -> None:
    """Nor is any trusted: should such a client ever speak TLS, it fails."""
    assert _authorities("http://127.0.0.1:8080") == 0
    assert tls_context("http://127.0.0.1:8080").check_hostname


def test_certificates_are_loaded_once() -> None:
    assert tls_context("https://a.test") is tls_context("https://b.test")
