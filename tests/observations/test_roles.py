"""What shows a container's role: each piece of evidence, and which of two is stronger."""

import pytest

from dltools.errors import ConfigError
from dltools.labels import Role
from dltools.observations import roles
from dltools.observations.roles import (
    NO_SIGN,
    UNREADABLE,
    Judgement,
    Reports,
    Rule,
    Rules,
    Signs,
    parse_rule,
)

TRAINING, SERVER, INTERACTIVE, OTHER = Role


@pytest.mark.parametrize(
    ("signs", "expected"),
    [
        (Signs(program="jupyter-lab"), "interactive: jupyter-lab"),
        (Signs(ports=[5432]), "server: publishes port 5432"),
        (Signs(runtimes=["libtorch"]), "training: libtorch in its processes, silent"),
        (Signs(device="GPU"), "training: uses a GPU, silent"),
        (Signs(), "other: no sign of a training"),
        (Signs(is_readable=False), "other: no sign of a training; its processes cannot be read"),
        # The stronger of two.
        (Signs("sshd", [22, 8888], ["libtorch"], device="GPU"), "interactive: sshd"),
        (Signs("", [6006], ["libtorch"], device="GPU"), "server: publishes port 6006"),
    ],
)
def test_what_can_be_seen(signs, expected) -> None:
    assert roles.by_evidence(signs).text == expected


PORT, TORCH, GPU = Signs(ports=[8080]), Signs(runtimes=["libtorch"]), Signs(device="GPU")
NOTHING, HIDDEN = Signs(), Signs(is_readable=False)


@pytest.mark.parametrize(
    ("metrics", "is_counted", "signs", "expected"),
    [
        # A loss with a step, whatever else is seen.
        (["learning_rate", "val_loss", "loss"], True, PORT, "training: reports val_loss"),
        # A loss alone: by the runtime, or where nobody can tell.
        (["loss"], False, TORCH, "training: reports loss"),
        (["loss"], False, GPU, "training: reports loss"),
        (["loss"], False, NOTHING, "other: reports loss without a step or an epoch"),
        (["loss"], False, HIDDEN, "training: reports loss without a step or an epoch"),
        # Another metric with a step: unless a port is published.
        (["rmse"], True, NOTHING, "training: reports rmse"),
        (["rmse"], True, PORT, "server: publishes port 8080"),
        (["reward"], True, NOTHING, "other: reports reward without a runtime in sight"),
        (["reward", "entropy"], True, NOTHING, "training: reports reward"),
        (["reward"], True, Signs(ports=[1], runtimes=["libtorch"]), "training: reports reward"),
        # Another metric alone.
        (["accuracy"], False, NOTHING, "other: reports accuracy without a step or an epoch"),
        (["packet_loss"], False, HIDDEN, "other: reports packet_loss without a step or an epoch"),
        (["accuracy"], False, TORCH, "training: libtorch in its processes, reports accuracy"),
        (["accuracy"], False, GPU, "training: uses a GPU, reports accuracy"),
        # Responses.
        (["accuracy", "latency_seconds"], False, NOTHING, "server: reports latency_seconds"),
        (["latency_seconds", "loss"], True, NOTHING, "training: reports loss"),
    ],
)
def test_what_reports_show_beside_what_is_seen(metrics, is_counted, signs, expected) -> None:
    assert roles.by_evidence(signs, Reports(metrics, is_counted)).text == expected


@pytest.mark.parametrize("label", ["dltools.metric", "dltools.pattern", "dltools.epochs"])
def test_what_an_owner_says_of_a_metric_makes_a_training(label) -> None:
    labelled, other = (Reports(["accuracy"], labels={one: "x"}) for one in (label, "dltools.user"))
    assert roles.by_evidence(PORT, labelled).text == "training: reports accuracy"
    assert roles.by_evidence(PORT, other).role == SERVER


LOSS, SCORE, COUNTED = Reports(["loss"]), Reports(["score"]), Reports(["loss"], is_counted=True)
WEB, SILENT = Judgement(SERVER, "publishes port 80"), Judgement(TRAINING, "libtorch, silent")


@pytest.mark.parametrize(
    ("row", "reports", "expected"),
    [
        (WEB, COUNTED, "training: reports loss"),
        (WEB, LOSS, "server: publishes port 80"),
        (NO_SIGN, Reports(), "other: no sign of a training"),
        (NO_SIGN, COUNTED, "training: reports loss"),  # from before this dl-probe
        (NO_SIGN, LOSS, "other: reports loss without a step or an epoch"),
        (UNREADABLE, LOSS, "training: reports loss without a step or an epoch"),
        (Judgement(OTHER, "--role x=other"), COUNTED, "other: --role x=other"),
        (None, SCORE, "other: reports score without a step or an epoch"),
    ],
)
def test_a_row_and_what_was_reported_before_it(row, reports, expected) -> None:
    assert roles.by_row(row, reports).text == expected


def test_a_loss_alone_only_seems_to_be_a_training() -> None:
    assert roles.by_evidence(HIDDEN, LOSS).is_doubtful
    assert roles.by_evidence(HIDDEN, Reports(["reward"], is_counted=True)).is_doubtful
    assert not roles.by_evidence(HIDDEN, COUNTED).is_doubtful
    assert not roles.by_evidence(TORCH, LOSS).is_doubtful


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ({"dltools.role": " Training "}, "training: label dltools.role=training"),
        ({"dltools.role": "other", "dltools.qoe": "0.2"}, "other: label dltools.role=other"),
        ({"dltools.qoe": "200ms"}, "server: response-time target 200ms"),
        ({"dltools.qoe": "soon"}, None),
        ({"dltools.qoe": "0"}, None),
        ({"dltools.target": "0.9"}, None),
        ({}, None),
    ],
)
def test_what_labels_say(labels, expected) -> None:
    found = roles.by_word(None, labels)
    assert (found and found.text) == expected


def test_an_option_overrules_a_label() -> None:
    rules = Rules([parse_rule("job-*=other"), parse_rule("job-2=server")])
    labels = {"dltools.role": "training"}
    found = [roles.by_word(rules.said(name, labels), labels) for name in ("job-1", "job-2", "x")]
    assert [one and one.text for one in found] == [
        "other: --role job-*=other",
        "server: --role job-2=server",  # the last one that fits
        "training: label dltools.role=training",
    ]


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("web=server", Rule(SERVER, "web")),
        ("a=b=other", Rule(OTHER, "a=b")),
        ("label:app=training", Rule(TRAINING, label="app")),
        ("label:app=pg=other", Rule(OTHER, label="app=pg")),
    ],
)
def test_a_rule_names_a_pattern_or_a_label(text, rule) -> None:
    assert parse_rule(text) == rule


@pytest.mark.parametrize("text", ["", "web", "=server", "web=", "web=serve", "label:=other"])
def test_a_wrong_rule_is_refused(text) -> None:
    with pytest.raises(ConfigError, match="--role"):
        parse_rule(text)


def test_a_rule_finds_containers_by_name_or_label() -> None:
    assert parse_rule("job-?=other").is_for("job-1", {})
    assert not parse_rule("job-?=other").is_for("job-10", {})
    assert parse_rule("label:app=pg=other").is_for("x", {"app": "pg"})
    assert not parse_rule("label:app=pg=other").is_for("x", {"app": "web"})
    assert parse_rule("label:app=other").is_for("x", {"app": "web"})


@pytest.mark.parametrize(
    ("labels", "is_touched"),
    [
        ({}, False),
        ({"dltools.role": "training"}, True),
        ({"dltools.role": "server"}, True),
        ({"dltools.role": "interactive"}, False),
        ({"dltools.role": "nonsense"}, False),
        ({"dltools.metric": "loss"}, False),  # says what is measured, and asks for nothing
        *(({name: "1"}, True) for name in ("dltools.target", "dltools.qoe", "dltools.steps")),
    ],
)
def test_on_shared_hosts_labels_of_the_owner_opt_in(labels, is_touched) -> None:
    assert Rules(only_labelled=True).leave_out(labels) is not is_touched
    assert not Rules().leave_out(labels)


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (("training", "why"), Judgement(TRAINING, "why")),
        (("Server", None), Judgement(SERVER, "")),
        (("gardening", "why"), None),
        ((None, None), None),
    ],
)
def test_rows_say_a_role_or_nothing(row, expected) -> None:
    assert roles.from_row(*row) == expected


@pytest.mark.parametrize(
    ("reason", "is_said"),
    [("--role x=training", True), ("label dltools.role=training", True), ("reports loss", False)],
)
def test_what_somebody_has_said_is_known_by_the_reason(reason, is_said) -> None:
    assert Judgement(TRAINING, reason).is_said is is_said
    assert not NO_SIGN.is_said
