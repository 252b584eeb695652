"""What names of metrics mean: which are metrics, which direction is better, which come first."""

import math

import pytest

from dltools.observations.judging_metric import (
    Seen,
    evaluation_order,
    evaluation_rank,
    fluctuating,
    is_adversarial,
    is_serving,
    latencies,
    seen,
    why_first,
)
from dltools.observations.metric_names import is_metric, normal_name, objective


@pytest.mark.parametrize(
    ("prefixes", "expected"),
    [(["p95_", ""], ["", "p95_"]), (["p99_", "mean_", "p95_"], ["mean_", "p95_", "p99_"])],
)
def test_response_times_by_preference(prefixes, expected) -> None:
    names, order = ([f"latency_{one}seconds" for one in some] for some in (prefixes, expected))
    assert latencies([*names, "loss"]) == order
    assert latencies(["loss"]) == []


BETTER_IS = {
    "max": ["val_ap50", "hellaswag", "success_rate", "win_rate", "mrr", "mcc", "exact_match",
            "pass@1", "rollout/ep_rew_mean", "mean_token_accuracy", "clip_score", "val/mAP50-95",
            "auroc"],
    "min": ["loss", "val_ppl", "lambada_perplexity", "FID", "wer", "val_bpb", "top1_err", "rmse",
            "acc_loss", "kl"],
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "better"), [(name, better) for better, names in BETTER_IS.items() for name in names]
)
def test_a_metric_is_better_when_larger_or_smaller(name, better) -> None:
    assert is_metric(normal_name(name))
    assert objective(normal_name(name)) == better


@pytest.mark.parametrize(
    "name", ["clip_ratio", "score_time", "reward_scale", "tokens_per_second", "accuracy_time"]
)
def test_a_measure_is_no_metric(name) -> None:
    assert not is_metric(normal_name(name))


@pytest.mark.parametrize(
    ("best", "others"),
    [
        ("reward", ["loss", "kl", "reward_std", "rewards_max"]),
        ("rollout/ep_rew_mean", ["train/loss", "train/value_loss", "val_loss"]),
        ("episodic_return", ["td_loss", "qf1_loss"]),
        ("loss", ["rewards/chosen", "rewards/margins", "rewards/accuracies", "grad_norm"]),
        ("val_loss", ["loss", "val_f1_score", "f1_score"]),
        ("loss", ["clip_score", "mean_token_accuracy"]),
        ("val_loss", ["val_box_loss", "val_cls_loss"]),
        ("mean_reward", ["episode_rew_lin_vel_z", "episode_rew_action_rate"]),  # parts of it
        ("val_loss", ["test_loss", "test_dice_loss"]),
    ],
)
def test_the_metric_to_judge_by(best, others) -> None:
    names = [normal_name(name) for name in (*others, best)]
    assert min(names, key=evaluation_rank) == normal_name(best)


def test_the_reason_for_the_choice_is_said() -> None:
    assert why_first("critic_score_mean") == "a reward or rate of success"
    assert why_first("val_loss") == "a loss or score of an evaluation"
    assert why_first("grad_norm") == "a norm or spread"


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["latency_seconds"], True),
        (["token_rate", "queue_length", "running_requests"], True),
        (["loss", "latency_token_seconds", "token_rate"], False),
        (["reward", "latency_token_seconds"], False),
        (["accuracy"], False),
    ],
)
def test_what_serves(names, expected) -> None:
    assert is_serving(names) is expected


def test_rates_of_a_server_rise_and_its_queue_falls() -> None:
    names = ("token_rate", "request_rate", "queue_length", "error_rate")
    assert [objective(name) for name in names] == ["max", "max", "min", "min"]


@pytest.mark.parametrize(
    ("found", "best"),
    [
        ({"val_loss": Seen(22.1, 1), "train_loss": Seen(27.5, 7)}, "train_loss"),
        ({"val_loss": Seen(22.1, 2), "train_loss": Seen(27.5, 7)}, "val_loss"),
        ({"val_loss": Seen(22.1, 1), "train_loss": Seen(27.5, 2)}, "val_loss"),
        ({"val_loss": Seen(22.1, 1), "train_loss": Seen(0.0, 7)}, "val_loss"),
        ({"val_loss": Seen(22.1, 1), "grad_norm": Seen(9.5, 70)}, "val_loss"),
        ({"val_loss": Seen(22.1, 1), "test_accuracy": Seen(0.9, 1)}, "val_loss"),
        ({"val_accuracy": Seen(0.9, 1), "loss": Seen(2.5, 2)}, "loss"),
        ({"val_accuracy": Seen(0.9, 1), "loss": Seen(2.5, 1)}, "val_accuracy"),
        # What never changes, or is rare, comes after the others.
        ({"val_loss": seen([-1.0] * 5), "loss": seen([2.5, 2.0, 1.5])}, "loss"),
        ({"val_loss": seen([-1.0] * 5)}, "val_loss"),
        ({"val_loss": seen([2.5, 2.5]), "loss": seen([2.5, 2.0, 1.5])}, "val_loss"),
        ({"reward": Seen(1.0, 90), "final_reward": Seen(1.0, 9)}, "reward"),
        ({"a_loss": Seen(1.0, 9), "b_loss": Seen(1.0, 90)}, "b_loss"),
        ({"a_loss": Seen(1.0, 10), "b_loss": Seen(1.0, 90)}, "a_loss"),
    ],
)
def test_a_result_that_came_once_comes_after_a_series(found, best) -> None:
    assert evaluation_order(found)[0] == best


def test_what_was_never_finite_comes_last() -> None:
    found = {"val_loss": Seen(0.0, 0), "loss": Seen(0.0, 9), "grad_norm": Seen(2.0, 9)}
    assert evaluation_order(found) == ["grad_norm", "loss", "val_loss"]
    assert seen([math.nan, -2.0, 1.0, math.inf]) == Seen(2.0, 2)
    assert seen([math.nan]) == Seen(0.0, 0)


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        (("d_loss", "g_loss", "accuracy"), True),
        (("train/d_loss_real", "train/g_loss_total"), True),
        (("disc_loss", "gen_loss"), True),
        (("generator loss", "discriminator loss"), True),
        (("errD", "errG"), True),
        (("critic_loss", "generator_loss"), True),
        (("critic_loss", "actor_loss"), False),
        (("loss_d", "loss"), False),
        (("val_loss", "g_loss"), False),
        (("D(x)", "D(G(z))"), False),
    ],
)
def test_adversarial_pairs(printed, expected) -> None:
    assert is_adversarial(map(normal_name, printed)) is expected


def test_beside_an_adversarial_pair_measures_of_samples_come_first() -> None:
    names = ("d_loss", "errd", "errg", "fid", "g_loss", "inception_score", "is_std", "val_g_loss")
    order = evaluation_order(dict.fromkeys(names, Seen(1.0, 9)))
    assert order[:2] == ["fid", "inception_score"]
    assert order[2:] == ["val_g_loss", "errg", "g_loss", "is_std", "errd", "d_loss"]
    assert fluctuating(names) == {"d_loss", "errd", "errg", "g_loss", "val_g_loss"}
    once = {"d_loss": Seen(1.0, 9), "g_loss": Seen(1.0, 9), "fid": Seen(90.0, 1)}
    assert evaluation_order(once) == ["g_loss", "d_loss", "fid"]
    assert [objective(name) for name in ("fid", "is", "inception_score")] == ["min", "max", "max"]


@pytest.mark.parametrize(
    ("first", "others"),
    [
        ("episode_reward", ["episode_return", "normalized_reward"]),
        ("actor_loss", ["critic_loss", "discriminator_loss"]),
        ("val_map", ["val_box_loss", "val_map50", "val_map75"]),
        ("val_map50_95", ["val_cls_loss", "val_map50", "map50_95"]),
        ("val_box_loss", ["box_loss", "loss"]),
        ("eval_loss", ["test_loss"]),
    ],
)
def test_what_says_more_comes_first(first, others) -> None:
    assert evaluation_order(dict.fromkeys([*others, first], Seen(1.0, 9)))[0] == first


def test_of_a_loss_and_what_its_task_is_measured_by_the_one_printed_first_counts() -> None:
    names = ["test_cer", "test_wer", "test_loss", "test_accuracy"]
    assert evaluation_order(dict.fromkeys(names, Seen(1.0, 9))) == names
    names = ["val_loss", "val_ndcg_20", "val_auc"]
    assert evaluation_order(dict.fromkeys(names, Seen(1.0, 9))) == names
    assert evaluation_order(dict.fromkeys(names[::-1], Seen(1.0, 9)))[0] == "val_ndcg_20"


def test_rewards_fluctuate_and_losses_do_not() -> None:
    names = ("ep_rew_mean", "val_reward", "success_rate", "loss", "value_loss", "accuracy")
    assert fluctuating(names) == {"ep_rew_mean", "val_reward", "success_rate"}
