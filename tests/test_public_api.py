import pubc


def test_every_public_name_exists():
    for name in pubc.__all__:
        assert getattr(pubc, name) is not None


def test_an_unknown_name_is_an_attribute_error():
    try:
        pubc.nonsense  # noqa: B018
    except AttributeError as error:
        assert "nonsense" in str(error)
    else:
        raise AssertionError("pubc.nonsense exists")
