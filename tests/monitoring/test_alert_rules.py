"""When a rule fires and when it is over."""

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from monitoring.alerts.rules import LONGEST_STEP, QUIET, Observation, State, Terms, judge

TERMS = Terms(threshold=90.0, clear=80.0, for_seconds=60.0, clear_seconds=30.0)

steps = st.floats(0.1, 20.0)
values = st.one_of(st.none(), st.floats(0.0, 120.0))


@dataclass
class Watch:
    """Evaluates one rule at the moments it is told, and keeps what happened."""

    terms: Terms = TERMS
    state: State = QUIET
    now: float = 1_000_000.0
    happened: list[str] = field(default_factory=list)

    def see(self, value: float | None, passed: float = 5.0, *, applies: bool = True) -> str:
        self.now += passed
        observation = Observation(value, applies)
        self.state, transition = judge(self.terms, observation, self.state, self.now)
        self.happened += [transition] if transition else []
        return self.state.phase

    def see_for(self, seconds: float, value: float | None) -> str:
        for _ in range(round(seconds / 5)):
            self.see(value)
        return self.state.phase


def fired() -> Watch:
    watch = Watch()
    watch.see_for(70, 95.0)
    assert watch.state.phase == "firing"
    return watch


def test_a_rule_fires_once_its_condition_has_lasted() -> None:
    watch = Watch()
    assert watch.see_for(60, 95.0) == "pending"
    assert watch.see(95.0) == "firing"
    assert watch.happened == ["begins", "fires"]


def test_a_rule_without_a_duration_fires_at_once() -> None:
    watch = Watch(Terms(threshold=0.0, clear=0.0))
    assert watch.see(1.0) == "firing"
    assert watch.see(0.0) == "quiet"


def test_a_condition_that_ends_early_never_fires() -> None:
    watch = Watch()
    watch.see_for(50, 95.0)
    assert watch.see(70.0) == "quiet"
    assert watch.happened == ["begins", "drops"]


def test_an_alert_is_over_after_the_value_was_calm_for_long_enough() -> None:
    watch = fired()
    assert watch.see_for(30, 79.0) == "firing"
    assert watch.see(79.0) == "quiet"
    assert watch.happened[-1] == "resolves"


def test_a_value_that_comes_back_meanwhile_begins_the_calm_anew() -> None:
    watch = fired()
    watch.see_for(25, 79.0)
    watch.see(95.0)
    assert watch.see_for(30, 79.0) == "firing"


def test_a_rule_may_watch_for_too_little() -> None:
    watch = Watch(Terms(threshold=0.3, clear=0.4, above=False))
    assert watch.see(0.35) == "quiet"
    assert watch.see(0.2) == "firing"
    assert watch.see(0.35) == "firing"
    assert watch.see(0.4) == "quiet"


def test_where_a_rule_does_not_apply_its_alert_is_over() -> None:
    watch = fired()
    for _ in range(7):
        watch.see(99.0, applies=False)
    assert watch.state.phase == "quiet"


def test_a_condition_that_cannot_be_seen_for_long_is_forgotten_before_it_fires() -> None:
    watch = Watch()
    watch.see_for(30, 95.0)
    assert watch.see_for(590, None) == "pending"
    assert watch.see_for(30, None) == "quiet"


@given(st.lists(st.tuples(values, steps), max_size=60))
def test_between_the_thresholds_nothing_changes(told: list[tuple[float | None, float]]) -> None:
    watch = fired()
    for value, passed in told:
        inside = None if value is None else 80.1 + value / 12.2
        assert watch.see(inside, passed) == "firing"
    quiet = Watch()
    for value, passed in told:
        inside = None if value is None else 80.1 + value / 12.2
        assert quiet.see(inside, passed) == "quiet"


@given(st.lists(steps, min_size=1, max_size=40))
def test_an_absent_value_neither_fires_nor_clears(passed: list[float]) -> None:
    alert, quiet = fired(), Watch()
    for seconds in passed:
        assert alert.see(None, seconds) == "firing"
        assert quiet.see(None, seconds) == "quiet"


@given(st.lists(st.tuples(values, steps), max_size=80))
def test_nothing_fires_before_it_was_seen_to_last(told: list[tuple[float | None, float]]) -> None:
    watch, since, before = Watch(), None, None
    for value, passed in told:
        watch.see(value, passed)
        beyond = value is not None and value > TERMS.threshold
        if not beyond and value is not None:
            since = None
        elif beyond and since is None:
            since = watch.now
        if "fires" in watch.happened and before is None:
            before = watch.now
            assert since is not None
            assert watch.now - since >= TERMS.for_seconds


@given(
    st.lists(st.tuples(values, st.floats(-5_000.0, 5_000.0)), max_size=60),
)
def test_a_clock_that_jumps_fires_and_clears_nothing_by_itself(
    told: list[tuple[float | None, float]],
) -> None:
    watch, held, calm = Watch(), 0.0, 0.0
    for value, passed in told:
        before = watch.state.phase
        watch.see(value, passed)
        counted = passed if 0 < passed <= LONGEST_STEP else 0.0
        held += counted
        calm += counted
        if before != "firing" and watch.state.phase == "firing":
            assert held >= TERMS.for_seconds
            calm = 0.0
        if before == "firing" and watch.state.phase == "quiet":
            assert calm >= TERMS.clear_seconds
            held = 0.0


def test_after_a_time_without_evaluation_nothing_is_concluded_from_it() -> None:
    watch = Watch()
    watch.see_for(30, 95.0)
    assert watch.see(95.0, passed=3600.0) == "pending"
    assert watch.see_for(50, 95.0) == "pending"
    alert = fired()
    assert alert.see(79.0, passed=3600.0) == "firing"
    assert alert.see_for(25, 79.0) == "firing"
    assert alert.see(79.0) == "quiet"
