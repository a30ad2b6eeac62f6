import pytest

import pubc


def test_every_public_name_exists():
    for name in pubc.__all__:
        assert getattr(pubc, name) is not None


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="nonsense"):
        pubc.nonsense  # noqa: B018
