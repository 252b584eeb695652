"""What a search tries: every policy, with the values that it names."""

from collections import Counter

from dltools.plan.policy import registry
from dltools.plan.policy.parameters import build
from dltools.sim.policy_search import candidates


def test_every_policy_is_tried_and_the_first_changes_nothing() -> None:
    found = list(candidates())
    assert (found[0].policy, found[0].assignments) == ("noop", ())
    assert {one.policy for one in found} == set(registry.policies([]))
    assert max(Counter(found).values()) == 1


def test_all_that_is_tried_can_be_set() -> None:
    for one in candidates():
        policy = registry.get(one.policy, [])
        build(policy.parameters, dict(text.split("=") for text in one.assignments))


def test_the_values_that_a_policy_names_are_tried() -> None:
    found = {text for one in candidates() for text in one.assignments}
    assert {"alpha=0.01", "favour=farthest", "gain=adaptive", "within=slaq", "itval=10"} <= found


def test_a_policy_that_gives_no_shares_is_tried_in_one_mode() -> None:
    specon = [one for one in candidates() if one.policy == "specon"]
    plain = [one for one in specon if "within" not in one.command]
    assert {one.mode for one in plain} == {"weight"}


def test_a_command_says_the_same() -> None:
    one = next(one for one in candidates() if len(one.assignments) == 2)
    first, second = one.assignments
    assert one.command == (
        f"dl-plan --policy {one.policy} --realize {one.mode} --set {first} --set {second}"
    )


def test_the_simplest_change_nothing_or_share_evenly_and_clusters_are_least_simple() -> None:
    found = {one.policy: one.complexity for one in candidates() if len(one.assignments) < 2}
    assert found["noop"] < found["fair"] < found["srtf"] < found["specon"]
