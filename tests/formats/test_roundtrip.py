import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.formats.roundtrip import CASES, check_round_trip, trajectory_sets

FEW = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
MANY = settings(FEW, max_examples=2000)


@pytest.mark.parametrize("name", CASES)
@FEW
@given(data=st.data())
def test_what_is_written_is_read_back(name: str, data: st.DataObject):
    check_round_trip(name, data.draw(trajectory_sets(CASES[name])))


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", CASES)
@MANY
@given(data=st.data())
def test_what_is_written_is_read_back_two_thousand_times(name: str, data: st.DataObject):
    check_round_trip(name, data.draw(trajectory_sets(CASES[name])))
