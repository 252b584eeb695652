"""Each family of log formats: excerpts in its own words, and the points that stand in them.

Every excerpt is read by `Automatic`, as a container's log is, so that a line which another family
claims shows here.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from importlib import import_module

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dltools.observations.metric_names import normal_name
from dltools.probe.progress import FAMILIES, Automatic, Family, Point, PointReader

Expected = list[tuple[str, float, int | None, float | None]]


@dataclass(frozen=True)
class Excerpt:
    """A log, its family, and what is in it: metric, value, step, epoch."""

    name: str
    family: str
    text: str
    points: Expected
    elapsed: list[float | None] | None = None


EXCERPTS = [
    Excerpt(
        "keras-2-bars",
        "keras",
        "Epoch 1/2\n"
        "\r100/500 [=====>........................] - ETA: 8s - loss: 0.2500 - acc: 0.6931"
        + "\b" * 80
        + "\r500/500 [==============================] - 10s 20ms/step - loss: 0.2400 - acc: 0.7000"
        + "\b" * 80
        + "\r500/500 [==============================] - 11s 22ms/step - loss: 0.2400 - acc: 0.7000"
        " - val_loss: 0.2000 - val_acc: 0.8000\n"
        "Epoch 2/2\n"
        "\r500/500 [==============================] - 10s 20ms/step - loss: nan - acc: 0.1000\n",
        [
            ("loss", 0.25, 100, 1), ("accuracy", 0.6931, 100, 1),
            ("loss", 0.24, 500, 1), ("accuracy", 0.7, 500, 1),
            ("val_loss", 0.2, 500, 1), ("val_accuracy", 0.8, 500, 1),
            ("loss", math.nan, 500, 2), ("accuracy", 0.1, 500, 2),
        ],
        [2.0, 2.0, 10.0, 10.0, 11.0, 11.0, 21.0, 21.0],
    ),
    Excerpt(
        "keras-2-plain",
        "keras",
        "Epoch 1/10\n"
        "50000/50000 [==============================] - 8s 169us/step - loss: 1.8493 - acc: 0.3242\n"
        "Epoch 2/10\n"
        "50000/50000 [==============================] - 8s 154us/step - loss: 1.3995 - acc: 0.4903\n"
        "10000/10000 [==============================] - 1s 80us/step - loss: 1.5 - acc: 0.5\n",
        [
            ("loss", 1.8493, 50000, 1), ("accuracy", 0.3242, 50000, 1),
            ("loss", 1.3995, 50000, 2), ("accuracy", 0.4903, 50000, 2),
            ("test_loss", 1.5, 10000, 2), ("test_accuracy", 0.5, 10000, 2),
        ],
    ),
    Excerpt(
        "keras-verbose-2",
        "keras",
        "Epoch 1/3\n - 3s - loss: 1.25 - acc: 0.5 - val_loss: 1.1 - val_acc: 0.6\n"
        "Epoch 2/3\n500/500 - 2s - 4ms/step - accuracy: 0.7 - loss: 1.0 - learning_rate: 1.0000e-04\n",
        [
            ("loss", 1.25, None, 1), ("accuracy", 0.5, None, 1),
            ("val_loss", 1.1, None, 1), ("val_accuracy", 0.6, None, 1),
            ("accuracy", 0.7, 500, 2), ("loss", 1.0, 500, 2),
        ],
        [3.0, 3.0, 3.0, 3.0, 5.0, 5.0],
    ),
    Excerpt(
        "keras-3",
        "keras",
        "Epoch 1/50\n"
        "\x1b[1m  1/179\x1b[0m \x1b[37m━━━━━━━━━━━━━━━━━━━━\x1b[0m \x1b[1m5:00\x1b[0m 2s/step"
        " - accuracy: 0.5000 - auc: 0.6000 - loss: 0.7000\r"
        "\x1b[1m179/179\x1b[0m \x1b[32m━━━━━━━━━━━━━━━━━━━━\x1b[0m\x1b[37m\x1b[0m \x1b[1m99s\x1b[0m"
        " 534ms/step - accuracy: 0.7510 - auc: 0.9332 - loss: 0.6358 - val_accuracy: 0.4"
        " - val_loss: 1.7472 - learning_rate: 1.0000e-04\n",
        [
            ("accuracy", 0.5, 1, 1), ("auc", 0.6, 1, 1), ("loss", 0.7, 1, 1),
            ("accuracy", 0.751, 179, 1), ("auc", 0.9332, 179, 1), ("loss", 0.6358, 179, 1),
            ("val_accuracy", 0.4, 179, 1), ("val_loss", 1.7472, 179, 1),
        ],
    ),
    Excerpt(
        "tqdm",
        "tqdm",
        "\rEpoch 1/2:   0%|          | 0/102 [00:00<?, ?it/s]"
        "\rEpoch 1/2:   1%|          | 1/102 [01:10<1:58:03, 70.13s/it, loss=1.038]"
        "\rEpoch 1/2:   1%|          | 1/102 [01:10<1:58:03, 70.13s/it, loss=1.037]"
        "\rEpoch 1/2:   2%|1         | 2/102 [01:20<1:00:03, 40.0s/it, loss=nan, acc=0.5]\n"
        "\rEpoch 2/2:   1%|          | 1/102 [00:10<1:58:03, 70.13s/it, loss=tensor(0.12)]\n",
        [
            ("loss", 1.038, 1, 1), ("loss", math.nan, 2, 1), ("accuracy", 0.5, 2, 1),
            ("loss", 0.12, 1, 2),
        ],
        [70.0, 80.0, 80.0, 90.0],
    ),
    Excerpt(
        "tqdm-variants",
        "tqdm",
        "100%|##########| 10/10 [00:02<00:00,  3.66it/s, avg_epoch_loss=5.26]\n"
        "37it [00:10,  3.60it/s, loss=0.3]\n"
        "validation:  50%|#####     | 1.20k/2.40k [00:01<00:01, 900samples/s, loss=0.4]\n"
        "loss: 0.53:  10%|#         | 5/50 [00:01<00:09, 4.9it/s]\n",
        [
            ("avg_epoch_loss", 5.26, 10, None), ("loss", 0.3, 37, None),
            ("val_loss", 0.4, 1200, None), ("loss", 0.53, 5, None),
        ],
    ),
    Excerpt(
        "lightning",
        "lightning",
        "\rEpoch 0:  50%|#####     | 1/2 [00:00<00:00,  5.87it/s, loss=0.35, v_num=vakz]"
        "\rValidation:   0%|          | 0/1 [00:00<?, ?it/s]\x1b[A"
        "\rEpoch 0: 100%|##########| 2/2 [00:00<00:00,  5.87it/s, v_num=0, train_loss_step=0.3,"
        " val_loss=0.333]\n"
        "Epoch 0, global step 1: 'val_loss' reached 0.33322 (best 0.33322), saving model to"
        " '/x/epoch=0-step=1-val_loss=0.3332.ckpt' as top 1\n"
        "       Test metric             DataLoader 0\n"
        "────────────────────────────────────────────\n"
        "        test_acc            0.9123\n"
        "        test_loss           0.2510\n",
        [
            ("loss", 0.35, 1, 0), ("train_loss_step", 0.3, 2, 0), ("val_loss", 0.333, 2, 0),
            ("val_loss", 0.33322, 1, 0),
            ("test_accuracy", 0.9123, None, 0), ("test_loss", 0.251, None, 0),
        ],
    ),
    Excerpt(
        "huggingface",
        "huggingface",
        "***** Running training *****\n  Num examples = 1,090\n  Total optimization steps = 1,635\n"
        "\r  1%|          | 10/1635 [00:12<33:20,  1.23s/it]\r                              \r"
        "{'loss': 1.5618, 'grad_norm': 1.2043813467025757, 'learning_rate': 9.98e-05, 'epoch': 0.01}\n"
        "\r  2%|          | 20/1635 [00:25<33:20,  1.23s/it]"
        "\r{'loss': '1.25', 'grad_norm': 'nan', 'learning_rate': '9e-05', 'epoch': '0.02'}\n"
        "{'eval_loss': 1.1, 'eval_accuracy': 0.7, 'eval_runtime': 3.2, 'eval_samples_per_second': 9,"
        " 'epoch': 1.0}\n"
        "{'train_runtime': 99.1, 'train_samples_per_second': 3.1, 'train_loss': 1.4, 'epoch': 3.0}\n",
        [
            ("loss", 1.5618, 10, 0.01), ("grad_norm", 1.2043813467025757, 10, 0.01),
            ("loss", 1.25, 20, 0.02), ("grad_norm", math.nan, 20, 0.02),
            ("eval_loss", 1.1, 20, 1.0), ("eval_accuracy", 0.7, 20, 1.0),
        ],
        [12.0, 12.0, 25.0, 25.0, 25.0, 25.0],
    ),
    Excerpt(
        "fastai",
        "tables",
        "epoch     train_loss  valid_loss  accuracy  perplexity  time    \n"
        "0         6.454500    5.968120    0.094213  390.770355  02:40     \n"
        "1         nan         5.9         #na#      380.0       02:30     \n",
        [
            ("train_loss", 6.4545, None, 0), ("val_loss", 5.96812, None, 0),
            ("accuracy", 0.094213, None, 0), ("perplexity", 390.770355, None, 0),
            ("train_loss", math.nan, None, 1), ("val_loss", 5.9, None, 1),
            ("perplexity", 380.0, None, 1),
        ],
        [160.0] * 4 + [310.0] * 3,
    ),
    Excerpt(
        "pytorch-mnist",
        "named",
        "[1,0]<stdout>:Train Epoch: 1 [10000/60000 (17%)]\tLoss: 2.299872\n"
        "Train Epoch: 1 [20480/60000 (34%)]\tLoss: 0.500000\n\n"
        "Test set: Average loss: 0.0578, Accuracy: 9812/10000 (98%)\n\n",
        [
            ("loss", 2.299872, 10000, 1), ("loss", 0.5, 20480, 1),
            ("test_loss", 0.0578, None, 1), ("test_accuracy", 0.9812, None, 1),
        ],
    ),
    Excerpt(
        "pytorch-imagenet",
        "pytorch",
        "Epoch: [0][  10/5005]\tTime  0.502 ( 0.698)\tData  0.000 ( 0.061)\tLoss 6.9e+00 (7.0e+00)"
        "\tAcc@1   0.39 (  0.28)\tAcc@5   1.17 (  0.78)\n"
        "Test: [  0/196]\tTime  5.5 ( 5.5)\tLoss 6.6 (6.6)\tAcc@1   1.2 (  1.2)\n"
        " *   Acc@1 76.130 Acc@5 92.862\n",
        [
            ("loss", 6.9, 10, 0), ("accuracy_1", 0.39, 10, 0), ("accuracy_5", 1.17, 10, 0),
            ("val_accuracy_1", 76.13, None, 0), ("val_accuracy_5", 92.862, None, 0),
        ],
    ),
    Excerpt(
        "pytorch-words",
        "named",
        "| epoch   1 |   200/ 2983 batches | lr 20.0000 | ms/batch  7.65 | loss 12.28 | ppl 216359.45\n"
        "| end of epoch   1 | time: 88.30s | valid loss  6.10 | valid ppl   445.96\n"
        "| End of training | test loss  4.9 | test ppl   134.3\n",
        [
            ("loss", 12.28, 200, 1), ("perplexity", 216359.45, 200, 1),
            ("val_loss", 6.1, None, 1), ("val_perplexity", 445.96, None, 1),
            ("test_loss", 4.9, None, 1), ("test_perplexity", 134.3, None, 1),
        ],
    ),
    Excerpt(
        "nanogpt",
        "nanogpt",
        "step 0: train loss 10.9, val loss 10.95\n"
        "iter 0: loss 10.9, time 2000.00ms, mfu -100.00%\n"
        "iter 10: loss 3.5023, time 1500.00ms, mfu 0.01%\n"
        "iter 20: loss nan, time 1440.31ms, mfu 0.01%\n",
        [
            ("train_loss", 10.9, 0, None), ("val_loss", 10.95, 0, None), ("loss", 10.9, 0, None),
            ("loss", 3.5023, 10, None), ("loss", math.nan, 20, None),
        ],
        [None, None, 2.0, 17.0, pytest.approx(31.4031)],  # type: ignore[list-item]
    ),
    Excerpt(
        "modded-nanogpt",
        "nanogpt",
        "step:0/6200 val_loss:10.9264 train_time:285ms step_avg:nanms\n"
        "step:276/6200 train_loss:4.5687 train_time:57429ms step_avg:215.90ms\n"
        "step:1389/1390 train_time:79572ms step_avg:57.29ms\n",
        [("val_loss", 10.9264, 0, None), ("train_loss", 4.5687, 276, None)],
        [0.285, 57.429],
    ),
    Excerpt(
        "llm.c",
        "nanogpt",
        "s:19559 trl:3.2217 lr:0.000000 norm:0.22\ns:19560 tel:3.2722\n"
        "step    1/19560 | loss 11.009 (+nanz)| norm 15.3 (+nanz)| lr 8.57e-07 | 3080 ms\n",
        [
            ("train_loss", 3.2217, 19559, None), ("grad_norm", 0.22, 19559, None),
            ("val_loss", 3.2722, 19560, None), ("loss", 11.009, 1, None),
            ("grad_norm", 15.3, 1, None),
        ],
    ),
    Excerpt(
        "torchtitan",
        "named",
        "[rank0]:2025-01-01 00:00:00,1 - root - INFO - step:  1  loss:  8.1309  grad_norm:  1.5"
        "  memory:  9.6GiB(12%)  tps: 1,200\n",
        [("loss", 8.1309, 1, None), ("grad_norm", 1.5, 1, None)],
    ),
    Excerpt(
        "litgpt",
        "nanogpt",
        "Epoch 1 | iter 16 step 1 | loss train: 1.25, val: n/a | iter time: 350.5 ms\n",
        [("train_loss", 1.25, 16, 1)],
    ),
    Excerpt(
        "megatron",
        "megatron",
        " [2025-04-13 23:41:12] iteration       10/    1000 | consumed samples:          160 |"
        " elapsed time per iteration (ms): 1000.0 | learning rate: 1.5E-05 | global batch size:  16 |"
        " loss scale: 131072.0 | number of skipped iterations: 1 |\n"
        " [2025-04-13 23:41:20] iteration       20/    1000 | consumed samples:          320 |"
        " elapsed time per iteration (ms): 820.7 | learning rate: 1.5E-05 | global batch size: 16 |"
        " lm loss: 1.072453E+01 | loss scale: 131072.0 | grad norm: 3.874 |"
        " number of skipped iterations:   0 | number of nan iterations:   0 |\n"
        "-------------------------------------------------------------------\n"
        " validation loss at iteration 50 | lm loss value: 8.889540E+00 | lm loss PPL: 7.255679E+03 |\n",
        [
            ("lm_loss", 10.72453, 20, None), ("grad_norm", 3.874, 20, None),
            ("val_lm_loss", 8.88954, 50, None), ("val_lm_loss_perplexity", 7255.679, 50, None),
        ],
    ),
    Excerpt(
        "deepspeed-chat",
        "deepspeed",
        "***** Evaluating perplexity, Epoch 0/16 *****\nppl: 4998.29638671875\n"
        "Beginning of Epoch 1/16, Total Micro Batches 460\n"
        "[2023-04-18 01:48:51,032] [INFO] [timer.py:199:stop] epoch=0/micro_step=160/global_step=160,"
        " RunningAvgSamplesPerSec=171.9, CurrSamplesPerSec=170.1\n"
        "[2023-04-18 01:46:53,259] [INFO] [loss_scaler.py:181:update_scale] [deepspeed] OVERFLOW! Rank"
        " 0 Skipping step. Attempted loss scale: 65536, reducing to 32768\n"
        "Epoch 1/16 with loss 0.5754789632299672\n"
        "epoch: 0|step: 23|ppo_ep: 1|act_loss: -0.139|cri_loss: 0.094|unsuper_loss: 0.0\n"
        "steps: 10 loss: 0.6931 iter time (s): 0.5 samples/sec: 32.0\n",
        [
            ("val_perplexity", 4998.29638671875, None, 0), ("loss", 0.5754789632299672, None, 1),
            ("act_loss", -0.139, 23, 0), ("cri_loss", 0.094, 23, 0), ("unsuper_loss", 0.0, 23, 0),
            ("loss", 0.6931, 10, 1),
        ],
    ),
    Excerpt(
        "fairseq-simple",
        "fairseq",
        "| epoch 004 | loss 4.640 | nll_loss 0.000 | ppl 1.00 | wps 6.74512e+06 | ups 10.6 |"
        " num_updates 1200 | lr 0.0007 | gnorm 17930.619 | clip 100% | oom 0 | loss_scale 8.000 |"
        " wall 102\n"
        "| epoch 004 | valid on 'valid' subset | loss 4.100 | ppl 17.15 | num_updates 1200\n"
        "| epoch 001:    100 / 3000 loss=9.25, nll_loss=9.0, ppl=512.0, wps=1000, loss_scale=128\n",
        [
            ("loss", 4.64, 1200, 4), ("nll_loss", 0.0, 1200, 4), ("perplexity", 1.0, 1200, 4),
            ("grad_norm", 17930.619, 1200, 4),
            ("val_loss", 4.1, 1200, 4), ("val_perplexity", 17.15, 1200, 4),
            ("loss", 9.25, 100, 1), ("nll_loss", 9.0, 100, 1), ("perplexity", 512.0, 100, 1),
        ],
    ),
    Excerpt(
        "fairseq-json",
        "fairseq",
        '2021-03-08 12:31:36 | INFO | train_inner | {"epoch": 1, "update": 0.0, "loss": "16.475",'
        ' "ppl": "91120.8", "wps": "9", "num_updates": "100", "gnorm": "3.5", "wall": "105"}\n'
        '[2022-04-08 18:48:05,372][train_inner][INFO] - {"epoch": 1, "update": 0.416,'
        ' "loss": "9.276", "ntokens": "116171", "num_updates": "200", "loss_0": "6.679"}\n'
        '[2022-04-08 18:48:05,372][valid][INFO] - {"epoch": 1, "valid_loss": "8.1",'
        ' "valid_num_updates": "200", "valid_best_loss": "8.1"}\n',
        [
            ("loss", 16.475, 100, 1), ("perplexity", 91120.8, 100, 1), ("grad_norm", 3.5, 100, 1),
            ("loss", 9.276, 200, 1), ("loss_0", 6.679, 200, 1), ("val_loss", 8.1, 200, 1),
        ],
    ),
    Excerpt(
        "detectron2",
        "detectron",
        "[11/09 14:34:10 d2.utils.events]:  eta: 0:14:15  iter: 19  total_loss: 3.505  loss_cls: 1.285"
        "  loss_box_reg: 0.003559  time: 0.4  data_time: 0.01  lr: 1.9981e-05  max_mem: 2756M\n"
        "[11/09 14:44:10 d2.evaluation.testing]: copypaste: Task: bbox\n"
        "[11/09 14:44:10 d2.evaluation.testing]: copypaste: AP,AP50,AP75,APs,APm,APl\n"
        "[11/09 14:44:10 d2.evaluation.testing]: copypaste: 37.1,58.2,40.0,20.1,nan,48.0\n",
        [
            ("total_loss", 3.505, 19, None), ("loss_cls", 1.285, 19, None),
            ("loss_box_reg", 0.003559, 19, None),
            ("val_map", 37.1, 19, None), ("val_map50", 58.2, 19, None),
            ("val_map75", 40.0, 19, None),
        ],
    ),
    Excerpt(
        "maskrcnn-detr",
        "detectron",
        "2019-05-23 05:30:26,627 maskrcnn_benchmark.trainer INFO: eta: 1:43:12  iter: 340"
        "  loss: 1.2723 (1.4682)  loss_classifier: 0.5202 (0.5098)  time: 0.2 (0.3)  lr: 0.086784"
        "  max mem: 4444\n"
        "Epoch: [3]  [ 10/65]  eta: 0:02:21  lr: 0.000100  class_error: 93.83  loss: 7.6190 (7.6190)"
        "  loss_ce: 1.1873 (1.1873)  time: 2.1  data: 0.5  max mem: 3000\n"
        "Averaged stats: lr: 0.000100  class_error: 83.33  loss: 6.0 (6.5)\n"
        " Average Precision  (AP) @[ IoU=0.50:0.95 | area=   all | maxDets=100 ] = 0.370\n"
        " Average Precision  (AP) @[ IoU=0.50      | area=   all | maxDets=100 ] = 0.590\n"
        " Average Precision  (AP) @[ IoU=0.50:0.95 | area= small | maxDets=100 ] = 0.170\n",
        [
            ("loss", 1.2723, 340, None), ("loss_classifier", 0.5202, 340, None),
            ("class_error", 93.83, 10, 3), ("loss", 7.619, 10, 3), ("loss_ce", 1.1873, 10, 3),
            ("val_map", 0.37, 10, 3), ("val_map50", 0.59, 10, 3),
        ],
    ),
    Excerpt(
        "mmengine",
        "mm",
        "11/08 15:58:16 - mmengine - INFO - Epoch(train) [1][   50/30895]  base_lr: 1.9e-04 lr: 1.9e-04"
        "  eta: 2 days, 7:32:05  time: 1.0788  data_time: 0.03  memory: 9000  grad_norm: nan"
        "  loss: 859.5978  loss_cls: 1.25\n"
        "11/08 17:58:16 - mmengine - INFO - Epoch(val) [1][500/500]    coco/bbox_mAP: 0.3210"
        "  coco/bbox_mAP_50: 0.52  data_time: 0.01  time: 0.05\n"
        "2021-03-08 12:31:36,000 - mmdet - INFO - Epoch [1][100/7330]\tlr: 1.978e-03, eta: 1 day, 2:00:00,"
        " time: 0.3, memory: 3000, loss_rpn_cls: 0.5, acc: 92.5, loss: 1.75\n",
        [
            ("grad_norm", math.nan, 50, 1), ("loss", 859.5978, 50, 1), ("loss_cls", 1.25, 50, 1),
            ("val_coco_bbox_map", 0.321, 500, 1), ("val_coco_bbox_map_50", 0.52, 500, 1),
            ("loss_rpn_cls", 0.5, 100, 1), ("accuracy", 92.5, 100, 1), ("loss", 1.75, 100, 1),
        ],
    ),
    Excerpt(
        "mm-json",
        "mm",
        '{"env_info": "sys.platform: linux", "seed": 0}\n'
        '{"mode": "train", "epoch": 1, "iter": 10, "lr": 0.0025, "memory": 3265, "data_time": 0.1,'
        ' "loss_rpn_cls": 0.001, "loss": 0.06792, "time": 0.47496}\n'
        '{"mode": "val", "epoch": 1, "iter": 500, "lr": 0.0025, "bbox_mAP": 0.321}\n',
        [
            ("loss_rpn_cls", 0.001, 10, 1), ("loss", 0.06792, 10, 1), ("val_bbox_map", 0.321, 500, 1),
        ],
    ),
    Excerpt(
        "yolo",
        "yolo",
        "\n      Epoch    GPU_mem   box_loss   cls_loss   dfl_loss  Instances       Size\n"
        "\r       1/10         0G      1.721      3.791      5.175         30        640:  11%|#         "
        "| 1/9 [00:02<00:24,  2.76s/it]"
        "\r       1/10      5.22G      1.700      3.700      5.100         30        640: 100%|##########"
        "| 9/9 [00:24<00:00,  2.76s/it]\n"
        "                 Class     Images  Instances      Box(P          R      mAP50  mAP50-95): 100%"
        "|##########| 2/2 [00:01<00:00,  1.2it/s]\n"
        "                   all        128        929       0.64      0.537      0.605      0.446\n"
        "                person        128        254       0.80      0.700      0.750      0.500\n",
        [
            ("box_loss", 1.721, 1, 1), ("cls_loss", 3.791, 1, 1), ("dfl_loss", 5.175, 1, 1),
            ("box_loss", 1.7, 9, 1), ("cls_loss", 3.7, 9, 1), ("dfl_loss", 5.1, 9, 1),
            ("val_precision", 0.64, None, 1), ("val_recall", 0.537, None, 1),
            ("val_map50", 0.605, None, 1), ("val_map50_95", 0.446, None, 1),
        ],
        [2.0] * 3 + [24.0] * 7,
    ),
    Excerpt(
        "yolo-5",
        "yolo",
        "     Epoch   gpu_mem       box       obj       cls    labels  img_size\n"
        "       0/2     3.45G   0.04621   0.06711   0.01849       115       640: 100%|#####| 8/8"
        " [00:05<00:00,  1.5it/s]\n",
        [("box_loss", 0.04621, 8, 0), ("obj_loss", 0.06711, 8, 0), ("cls_loss", 0.01849, 8, 0)],
    ),
    Excerpt(
        "yolox",
        "named",
        "\x1b[32m2021-08-01 16:59:33\x1b[0m | \x1b[1mINFO    \x1b[0m | \x1b[36myolox.core.trainer\x1b[0m:"
        "\x1b[36m237\x1b[0m - \x1b[1mepoch: 56/300, iter: 10/114, mem: 9000Mb, iter_time: 0.4s,"
        " data_time: 0.0s, total_loss: 3.2, iou_loss: 1.6, l1_loss: 0.0, conf_loss: 1.1, cls_loss: 0.5,"
        " lr: 1.0e-03, size: 640, ETA: 7:08:31\x1b[0m\n",
        [
            ("total_loss", 3.2, 10, 56), ("iou_loss", 1.6, 10, 56), ("l1_loss", 0.0, 10, 56),
            ("conf_loss", 1.1, 10, 56), ("cls_loss", 0.5, 10, 56),
        ],
    ),
    Excerpt(
        "darknet",
        "darknet",
        " 5045: 0.872799, 0.996185 avg loss, 0.000261 rate, 0.466129 seconds, 242160 images,"
        " 0.144395 hours left\nLoaded: 0.000030 seconds\n"
        " (next mAP calculation at 5100 iterations) \n"
        " mean average precision (mAP@0.50) = 0.783210, or 78.32 % \n",
        [
            ("loss", 0.872799, 5045, None), ("avg_loss", 0.996185, 5045, None),
            ("val_map", 0.78321, 5045, None),
        ],
        [0.466129] * 3,
    ),
    Excerpt(
        "mlperf",
        "mlperf",
        ':::MLL 1558421081.652 eval_accuracy: {"value": 0.29245999455451965, "metadata":'
        ' {"epoch_num": 4, "lineno": 481, "file": "/tmp/x"}}\n'
        ':::MLL 1558421081.653 block_start: {"value": null, "metadata": {"first_epoch_num": 8}}\n'
        ':::MLLOG {"namespace": "", "time_ms": 1560881849843, "event_type": "POINT_IN_TIME",'
        ' "key": "eval_accuracy", "value": 0.5, "metadata": {"file": "x", "epoch_num": 8}}\n'
        ':::MLLOG {"key": "eval_accuracy", "time_ms": 1560881849843, "value": {"BBOX": 0.3,'
        ' "SEGM": 0.25}, "metadata": {"epoch_num": 12}}\n'
        ':::MLPv0.5.0 resnet 1541640000.123 (main.py:12) eval_accuracy: {"epoch": 4, "value": 0.75}\n'
        ':::MLL 1558421081.7 eval_samples: {"value": 50000, "metadata": {}}\n',
        [
            ("eval_accuracy", 0.29245999455451965, None, 4), ("eval_accuracy", 0.5, None, 8),
            ("eval_accuracy_bbox", 0.3, None, 12), ("eval_accuracy_segm", 0.25, None, 12),
            ("eval_accuracy", 0.75, None, 4),
        ],
    ),
    Excerpt(
        "mlperf-language-model",
        "mlperf",
        ':::MLLOG {"key": "submission_benchmark", "value": "llama2_70b_lora", "metadata": {}}\n'
        ':::MLLOG {"key": "eval_accuracy", "value": 0.9375, "metadata": {"samples_count": 8}}\n',
        [("eval_log_perplexity", 0.9375, 8, None)],
    ),
    Excerpt(
        "mlperf-unnamed-language-model",
        "mlperf",
        ':::MLLOG {"key": "eval_accuracy", "value": 3.5, "metadata": {"samples_count": 8}}\n'
        ':::MLLOG {"key": "eval_accuracy", "value": 0.75, "metadata": {"samples_count": 9}}\n',
        [("eval_log_perplexity", 3.5, 8, None), ("eval_log_perplexity", 0.75, 9, None)],
    ),
    Excerpt(
        "tensorflow-1",
        "tensorflow",
        "INFO:tensorflow:step = 1, loss = 2.5, precision = 0.1\n"
        "INFO:tensorflow:step = 101, loss = 2.00101, precision = 0.367188 (2.943 sec)\n"
        "INFO:tensorflow:global_step/sec: 14.447\n"
        "INFO:tensorflow:loss = 1.5, step = 201 (0.897 sec)\n"
        "INFO:tensorflow:Saving dict for global step 1000: accuracy = 0.9, global_step = 1000,"
        " loss = 0.3\n"
        "INFO:tensorflow:Loss for final step: 0.125.\n",
        [
            ("loss", 2.5, 1, None), ("precision", 0.1, 1, None),
            ("loss", 2.00101, 101, None), ("precision", 0.367188, 101, None),
            ("loss", 1.5, 201, None),
            ("val_accuracy", 0.9, 1000, None), ("val_loss", 0.3, 1000, None),
            ("loss", 0.125, 201, None),
        ],
        [0.0, 0.0, 2.943, 2.943, *[pytest.approx(3.84)] * 4],  # type: ignore[list-item]
    ),
    Excerpt(
        "mxnet",
        "mxnet",
        "2019-06-18 18:19:30,116 Node[0] Epoch[2] Batch [20-40]\tSpeed: 11228.82 samples/sec\t"
        "accuracy=0.219712\n"
        "INFO:root:Epoch[2] Train-accuracy=0.337976\nINFO:root:Epoch[2] Time cost=12.5\n"
        "INFO:root:Epoch[2] Validation-accuracy=0.4\n",
        [
            ("accuracy", 0.219712, 40, 2), ("train_accuracy", 0.337976, None, 2),
            ("val_accuracy", 0.4, None, 2),
        ],
        [None, None, 12.5],
    ),
    Excerpt(
        "gluon",
        "mxnet",
        "Batch 100: Loss: 82.8983\nBatch 200: Loss: 148.3790\n"
        "Epoch 0, 0.985651 test_accuracy after 122.56 seconds\nBatch 100: Loss: 63.2765\n"
        "[Epoch 1 Batch 99/782] loss=0.5, lr=0.1000000, acc=0.75\n",
        [
            ("loss_sum", 82.8983, 100, 0), ("loss_sum", 148.379, 200, 0),
            ("test_accuracy", 0.985651, None, 0), ("loss_sum", 63.2765, 100, 1),
            ("loss", 0.5, 99, 1), ("accuracy", 0.75, 99, 1),
        ],
    ),
    Excerpt(
        "caffe",
        "caffe",
        "I0411 08:54:34.289355 10647 solver.cpp:341] Iteration 0, Testing net (#0)\n"
        "I0411 08:54:34.289355 10647 solver.cpp:409]     Test net output #0: accuracy = 0.001\n"
        "I0411 08:54:34.428942 10647 solver.cpp:237] Iteration 0, loss = 7.39714\n"
        "I0124 14:44:45.779754 32217 solver.cpp:253]     Train net output #0: loss = 87.3365"
        " (* 1 = 87.3365 loss)\n"
        "I0124 14:44:45.779754 32217 sgd_solver.cpp:106] Iteration 0, lr = 0.01\n"
        "I0124 14:45:45.779754 32217 solver.cpp:218] Iteration 100 (12.3 iter/s, 8.1s/100 iters),"
        " loss = 5.5\n",
        [
            ("test_accuracy", 0.001, 0, None), ("loss", 7.39714, 0, None),
            ("train_loss", 87.3365, 0, None), ("loss", 5.5, 100, None),
        ],
    ),
    Excerpt(
        "nvidia",
        "nvidia",
        "0: TRAIN [0][50/1938]\tTime 0.118 (0.148)\tData 2.17e-04 (8.73e-03)\tTok/s 88584 (89645)\t"
        "Loss/tok 8.5587 (9.3642)\tLR 6.325e-05\n"
        "Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 4096.0\n"
        "0: Summary: Epoch: 0\tTraining Loss: 4.5678\tValidation Loss: 3.5\tTest BLEU: 20.10\n"
        "Iteration:    960, Loss function: 4.997, Average Loss: 4.262, avg. samples / sec: 4409.30\n"
        "DLL 2020-11-30 10:20:30.123456 - Epoch: 1 Iteration: 20  train_loss : 3.25 lr : 0.1\n"
        'DLLL {"timestamp": "1", "datetime": "x", "elapsedtime": "12.5", "type": "LOG",'
        ' "step": [1, 40], "data": {"train.loss": 3.125}}\n',
        [
            ("loss_tok", 8.5587, 50, 0), ("train_loss", 4.5678, None, 0), ("val_loss", 3.5, None, 0),
            ("test_bleu", 20.1, None, 0), ("loss", 4.997, 960, None),
            ("train_loss", 3.25, 20, 1), ("train_loss", 3.125, 40, 1),
        ],
    ),
    Excerpt(
        "xgboost",
        "named",
        "[0]\tvalidation_0-logloss:0.61\tvalidation_1-logloss:0.62\n"
        "[100]\ttrain-rmse:0.1\teval-rmse:0.2\n",
        [
            ("val_0_logloss", 0.61, 0, None), ("val_1_logloss", 0.62, 0, None),
            ("train_rmse", 0.1, 100, None), ("eval_rmse", 0.2, 100, None),
        ],
    ),
    Excerpt(
        "lightgbm",
        "boosting",
        "[20]\ttraining's l2: 0.24\tvalid_1's binary_logloss: 0.533323\n"
        "10:\tlearn: 0.6920\ttest: 0.6921\tbest: 0.6921 (0)\ttotal: 1m 5s\tremaining: 65ms\n",
        [
            ("train_l2", 0.24, 20, None), ("val_1_binary_logloss", 0.533323, 20, None),
            ("train_loss", 0.692, 10, None), ("val_loss", 0.6921, 10, None),
        ],
    ),
    Excerpt(
        "espnet",
        "espnet",
        "[host] 2020-09-17 18:14:26,464 (trainer:672) INFO: 1epoch:train:1-100batch: iter_time=0.164,"
        " forward_time=0.2, loss_ctc=500.5, loss=490.25, acc=0.1, optim0_lr0=0.0001\n"
        "[host] 2020-09-17 18:14:26,464 (trainer:243) INFO: 1epoch results: [train] iter_time=0.164,"
        " loss=480.386, time=1 minute and 43.19 seconds, total_count=100, [valid] loss=479.955,"
        " acc=0.2, [att_plot] time=2.1 seconds\n",
        [
            ("loss_ctc", 500.5, 100, 1), ("loss", 490.25, 100, 1), ("accuracy", 0.1, 100, 1),
            ("train_loss", 480.386, None, 1), ("val_loss", 479.955, None, 1),
            ("val_accuracy", 0.2, None, 1),
        ],
    ),
    Excerpt(
        "speechbrain",
        "named",
        "speechbrain.utils.train_logger - epoch: 2, lr: 1.00e+00 - train loss: 7.26e-01 - valid loss:"
        " 1.27, valid CER: 1.54e+02, valid WER: 1.54e+02\n"
        "Epoch loaded: 2 - test loss: 1.30, test WER: 12.5\n",
        [
            ("train_loss", 0.726, None, 2), ("val_loss", 1.27, None, 2), ("val_cer", 154.0, None, 2),
            ("val_wer", 154.0, None, 2), ("test_loss", 1.3, None, 2), ("test_wer", 12.5, None, 2),
        ],
    ),
    Excerpt(
        "kaldi",
        "kaldi",
        "LOG (nnet3-train:UpdateStats():nnet-training.cc:342) Average objective function for 'output'"
        " for minibatches 40-49 is -35.0044 over 19538 frames.\n"
        "LOG (nnet3-train:x) Overall average objective function for 'output' is -0.63 over 1.2e+06 frames.\n",
        [("objective", -35.0044, 49, None), ("overall_objective", -0.63, None, None)],
    ),
    Excerpt(
        "stable-baselines",
        "baselines",
        "------------------------------------------\n"
        "| rollout/                |              |\n"
        "|    ep_len_mean          | 25.1         |\n"
        "|    ep_rew_mean          | 517          |\n"
        "| time/                   |              |\n"
        "|    fps                  | 1029         |\n"
        "|    iterations           | 2            |\n"
        "|    time_elapsed         | 3            |\n"
        "|    total_timesteps      | 4096         |\n"
        "| train/                  |              |\n"
        "|    learning_rate        | 0.0003       |\n"
        "|    loss                 | 7.25         |\n"
        "|    value_loss           | 52.5         |\n"
        "------------------------------------------\n",
        [
            ("ep_len_mean", 25.1, 4096, None), ("ep_rew_mean", 517.0, 4096, None),
            ("loss", 7.25, 4096, None), ("value_loss", 52.5, 4096, None),
        ],
        [3.0] * 4,
    ),
    Excerpt(
        "json-lines",
        "jsonlines",
        '{"epoch": 1, "step": 10, "train_loss": 0.5, "lr": 0.1, "time": 12.5}\n'
        '{"level":"info","ts":1700000000.1,"msg":"step done","loss":"0.25","step":3}\n'
        'INFO {"step": 10, "val": {"loss": 0.4, "accuracy": 0.9}, "metrics": {"f1": NaN}}\n'
        '{"method": "GET", "status": 200, "bytes": 123, "latency": "fast"}\n',
        [
            ("train_loss", 0.5, 10, 1), ("loss", 0.25, 3, None),
            ("val_loss", 0.4, 10, None), ("val_accuracy", 0.9, 10, None), ("f1", math.nan, 10, None),
        ],
    ),
    Excerpt(
        "logfmt",
        "named",
        'level=info step=10 loss=0.5 lr=0.1 msg="all is well"\n'
        'time=2026-01-31T12:00:00Z level=info epoch=1 train_loss="0.3" val_acc=0.5\n'
        'level=info status=200 duration=12ms path="/x"\n',
        [("loss", 0.5, 10, None), ("train_loss", 0.3, None, 1), ("val_accuracy", 0.5, None, 1)],
    ),
    Excerpt(
        "chainer",
        "tables",
        "epoch       iteration   main/loss   validation/main/loss\n"
        "\x1b[J1           342         0.204333    0.836164              \n"
        "\x1b[J     total [##############....................................] 29.32%\n"
        "       500 iter, 1 epoch / 5 epochs\n       inf iters/sec. Estimated time to finish: 0:00:00.\n"
        "\x1b[4A\x1b[J2           683         0.154302    0.471195              \n",
        [
            ("loss", 0.204333, 342, 1), ("val_loss", 0.836164, 342, 1),
            ("loss", 0.154302, 683, 2), ("val_loss", 0.471195, 683, 2),
        ],
    ),
    Excerpt(
        "cntk",
        "cntk",
        " Minibatch[   1- 100]: loss = 2.302585 * 6400, metric = 90.00% * 6400;\n"
        "Finished Epoch[1 of 10]: [Training] loss = 2.25 * 50000, metric = 85.00% * 50000 12.3s"
        " (4065.0 samples/s);\n",
        [
            ("loss", 2.302585, 100, 1), ("error", 0.9, 100, 1),
            ("train_loss", 2.25, None, 1), ("train_error", 0.85, None, 1),
        ],
    ),
    Excerpt(
        "flowcon",
        "named",
        "Loss: 0.52 Accuracy: 0.91 Time: 12.1\nLoss: nan Accuracy: 0.91 Time: 13.1\n",
        [("loss", 0.52, None, None), ("accuracy", 0.91, None, None),
         ("loss", math.nan, None, None), ("accuracy", 0.91, None, None)],
    ),
    Excerpt(
        "serving",
        "serving",
        "(APIServer pid=1) INFO 05-07 04:56:17 [loggers.py:271] Engine 000: Avg prompt throughput: "
        "2.5 tokens/s, Avg generation throughput: 128.0 tokens/s, Running: 4 reqs, Waiting: 3 reqs,"
        " GPU KV cache usage: 17.5%, Prefix cache hit rate: 0.0%\n"
        "INFO 03-18 09:04:46 [metrics.py:481] Avg prompt throughput: 0.0 tokens/s, Avg generation "
        "throughput: 0.0 tokens/s, Running: 0 reqs, Swapped: 0 reqs, Pending: 0 reqs, GPU KV cache "
        "usage: 0.0%, CPU KV cache usage: 0.0%.\n"
        "[2026-01-31 14:05:21 TP0] Decode batch, #running-req: 5, #token: 20800, token usage: 0.29,"
        " cuda graph: True, gen throughput (token/s): 160.00, #queue-req: 7\n"
        "slot print_timing: id  0 | task 388 | n_decoded =    172, tg =  12.00 t/s\n"
        "prompt eval time =     789.00 ms /    27 tokens (   29.22 ms per token,    34.22 tokens "
        "per second)\n"
        "       eval time =   16112.50 ms /   192 tokens (   84.00 ms per token,    11.90 tokens "
        "per second)\n"
        "      total time =   16901.50 ms /   219 tokens\n"
        '2026-01-31T19:36:02.798333Z  INFO generate{total_time="1.25s" validation_time="11.2ms" '
        'queue_time="500\u00b5s" inference_time="1.19s" time_per_token="12.5ms"}: text_generation_'
        "router::server: router/src/server.rs:1290: Success\n"
        "    Throughput: 1407.5 infer/sec\n    Avg latency: 708 usec (standard deviation 56 usec)\n"
        "    p99 latency: 1500 usec\n",
        [
            ("token_rate", 128.0, None, None), ("running_requests", 4.0, None, None),
            ("queue_length", 3.0, None, None), ("latency_token_seconds", 0.03125, None, None),
            ("token_rate", 0.0, None, None), ("running_requests", 0.0, None, None),
            ("queue_length", 0.0, None, None),
            ("token_rate", 160.0, None, None), ("running_requests", 5.0, None, None),
            ("queue_length", 7.0, None, None), ("latency_token_seconds", 0.03125, None, None),
            ("token_rate", 12.0, None, None), ("latency_first_token_seconds", 0.789, None, None),
            ("latency_token_seconds", 0.084, None, None), ("token_rate", 11.9, None, None),
            ("latency_seconds", 16.9015, None, None),
            ("latency_seconds", 1.25, None, None), ("queue_seconds", 500 * 1e-6, None, None),
            ("latency_token_seconds", 0.0125, None, None),
            ("request_rate", 1407.5, None, None), ("latency_seconds", 708 * 1e-6, None, None),
            ("latency_p99_seconds", 1500 * 1e-6, None, None),
        ],
    ),
    Excerpt(
        "latency",
        "latency",
        "INFO served /predict latency: 12.5 ms\n"
        "request_latency_seconds=0.02 model=a\n"
        'p99 latency = 35 ms\n{"path": "/generate", "latency_ms": 12.0}\n'
        "inference time: 8.5ms\n"
        '10.0.0.1 - - "POST /v1 HTTP/1.1" 200 12 rt=0.125\n'
        "POST /predict took 120ms\n"
        "2026-01-31 12:00:00,1 [INFO ] W-9000 TS_METRICS - PredictionTime.Milliseconds:250.5|#ModelName:m\n"
        '[GIN] 2026/01/31 - 12:00:00 | 200 |  1.25s |       127.0.0.1 | POST     "/api/chat"\n',
        [
            ("latency_seconds", 0.0125, None, None), ("latency_seconds", 0.02, None, None),
            ("latency_p99_seconds", 0.035, None, None), ("latency_seconds", 0.012, None, None),
            ("latency_seconds", 0.0085, None, None), ("latency_seconds", 0.125, None, None),
            ("latency_seconds", 0.12, None, None), ("latency_seconds", 0.2505, None, None),
            ("latency_seconds", 1.25, None, None),
        ],
    ),
]  # fmt: skip


def read(data: bytes, piece: int = 0) -> list[Point]:
    log = PointReader(Automatic())
    if not piece:
        return log.feed(data) + log.end()
    parts = [data[at : at + piece] for at in range(0, len(data), piece)]
    return [point for part in parts for point in log.feed(part)] + log.end()


def same(found: list[Point], expected: Expected) -> bool:
    got = [(p.metric, p.value, p.step, p.epoch) for p in found]
    return repr(got) == repr([(m, float(v), s, None if e is None else float(e))
                              for m, v, s, e in expected])  # fmt: skip


by_name = pytest.mark.parametrize("excerpt", EXCERPTS, ids=lambda excerpt: excerpt.name)


@by_name
def test_the_points_of_a_log_are_found(excerpt: Excerpt) -> None:
    found = read(excerpt.text.encode())
    expected = [(m, float(v), s, None if e is None else float(e)) for m, v, s, e in excerpt.points]
    got = [(p.metric, p.value, p.step, p.epoch) for p in found]
    assert [repr(p) for p in got] == [repr(p) for p in expected]
    assert {p.source for p in found} == {excerpt.family}
    if excerpt.elapsed is not None:
        assert [p.elapsed_s for p in found] == excerpt.elapsed


@by_name
@pytest.mark.parametrize("piece", [1, 7, 100])
def test_pieces_of_any_size_give_the_same(excerpt: Excerpt, piece: int) -> None:
    data = excerpt.text.encode()
    assert repr(read(data, piece)) == repr(read(data))


@by_name
def test_time_elapsed_never_goes_back(excerpt: Excerpt) -> None:
    spans = [p.elapsed_s for p in read(excerpt.text.encode()) if p.elapsed_s is not None]
    assert spans == sorted(spans)


def test_every_family_has_an_excerpt() -> None:
    assert {excerpt.family for excerpt in EXCERPTS} == {*FAMILIES, "named"}


@pytest.mark.parametrize(
    "line",
    [
        "Downloading: 100%|##########| 440M/440M [00:10<00:00, 41.0MB/s]",
        "Map:  12%|#2        | 1000/8000 [00:01<00:07, 950 examples/s]",
        "loss scale: 65536",
        "[2023-04-18] [INFO] [loss_scaler.py:181:update_scale] Attempted loss scale: 65536",
        "| WARNING: overflow detected, setting loss scale to: 64.0",
        "learning_rate: 0.001",
        "lr=0.001 eta=0:10:00",
        "saving checkpoint to /models/loss_0.53.pt",
        "/x/epoch=0-val_loss=0.33.ckpt",
        "best model: epoch=3-step=400-val_loss=0.1234.ckpt saved",
        "Epoch 3: 100%|##########| 938/938 [00:05<00:00, 160.27it/s]",
        "ETA: 12:30",
        "10.0.0.1 - - [21/Nov/2026:01:30:37 +0000] \"GET /metrics HTTP/1.1\" 200 512",
        "Collecting torch==2.5.1 (from -r requirements.txt (line 3))",
        "GPU 0: 45C, 120 / 300 W | 12000 / 16384 MB",
        "train data 4590101 examples",
        "  File \"/x/train.py\", line 12, in loss",
        "iter time: 350.5 ms, forward_time=0.2",
        "1875/1875 - 3s - 2ms/step",
    ],
)  # fmt: skip
def test_what_is_no_progress_gives_none(line: str) -> None:
    assert read(line.encode() + b"\n") == []


def is_sound(point: Point) -> bool:
    """Tell whether a row of observations can hold the point."""
    return (
        point.metric == normal_name(point.metric) != ""
        and isinstance(point.value, float)
        and (point.step is None or -(2**63) <= point.step < 2**63)
        and (point.epoch is None or isinstance(point.epoch, float))
        and (point.elapsed_s is None or point.elapsed_s >= 0)
        and point.source in {*FAMILIES, "named"}
    )


@given(st.lists(st.sampled_from([line for e in EXCERPTS for line in e.text.split("\n")]),
                max_size=30), st.data())  # fmt: skip
def test_no_mixture_of_formats_makes_it_fail(lines: list[str], data: st.DataObject) -> None:
    mangled = [
        line[: data.draw(st.integers(0, len(line)))] if data.draw(st.booleans()) else line
        for line in lines
    ]
    assert all(map(is_sound, read("\n".join(mangled).encode())))


@given(st.lists(st.text() | st.from_regex(r"[a-zA-Z_]{1,9} ?[:=] ?-?\d{1,30}(\.\d+)?(e\d{1,4})?")))
def test_no_text_makes_it_fail(lines: list[str]) -> None:
    assert all(map(is_sound, read("\n".join(lines).encode(errors="surrogatepass"))))


@given(st.binary())
def test_no_bytes_make_it_fail(data: bytes) -> None:
    assert all(map(is_sound, read(data)))


@pytest.mark.parametrize("digits", [19, 20, 400, 5000])
def test_numbers_of_any_length_are_borne(digits: int) -> None:
    for excerpt in EXCERPTS:
        long = re.sub(r"\b\d+\b", "9" * digits, excerpt.text)
        assert all(map(is_sound, read(long.encode())))


def test_a_family_is_kept_once_it_is_known() -> None:
    lines = [f"Epoch: [1][{n}/5005]\tLoss 0.5 (0.7)\n" for n in range(50)]
    found = read("".join([*lines, "loss: 0.1\n", *lines[:1]]).encode())
    assert {point.source for point in found} == {"pytorch"}
    assert len(found) == 51


def test_a_log_that_changes_its_format_is_looked_at_again() -> None:
    first = [f"Epoch: [1][{n}/5005]\tLoss 0.5 (0.7)\n" for n in range(50)]
    second = [f"step:{n}/9000 train_loss:4.5 train_time:{n}ms step_avg:1ms\n" for n in range(2000)]
    sources = [point.source for point in read("".join(first + second).encode())]
    assert sources.count("pytorch") == 50
    assert sources.count("nanogpt") >= 1799


@by_name
def test_a_family_needs_only_what_its_lines_have(excerpt: Excerpt) -> None:
    """What a family reads when asked for every line, it reads when asked for those it needs."""
    for name in FAMILIES:
        all_lines, some_lines = _family(name), _family(name)
        for line in excerpt.text.replace("\r", "\n").splitlines():
            lower = re.sub(r"\d", "0", line).lower()
            expected = all_lines.points(line)
            is_asked = not some_lines.needs or any(need in lower for need in some_lines.needs)
            assert repr(some_lines.points(line) if is_asked else []) == repr(expected)


def _family(name: str) -> Family:
    made: Family = import_module(f"dltools.probe.progress.families.{name}").Log()
    return made
