"""Puts words for metrics, phases and counters into English, before a line is read.

Only words that are not ASCII count: those that are may mean anything elsewhere. Words side by side
become one name, so that a name of two words stays one.
"""

from __future__ import annotations

import re

_WORDS = {
    "loss": "損失 损失 损失值 손실 потери потеря pérdida",
    "error": "誤差 误差 錯誤率 错误率 오차 ошибка",
    "accuracy": "正解率 精度 准确率 準確率 正确率 准确度 정확도 точность",
    "recall": "再現率 召回率 재현율",
    "precision": "適合率 精确率 精確率 정밀도 précision",
    "perplexity": "困惑度",
    "reward": "報酬 奖励 獎勵 보상 награда récompense",
    "score": "スコア 得分 分数 점수",
    "lr": "学習率 学习率 學習率 학습률",
    "train": "訓練 训练 学習 学习 훈련 학습 обучение entraînement",
    "val": "検証 验证 驗證 校验 검증 валидация validación validação",
    "test": "テスト 测试 測試 테스트 тест",
    "eval": "評価 评估 評估 평가",
    "average": "平均 평균 среднее",
    "best": "最良 最佳 最优 最優 最高 최고",
    "epoch": "エポック 轮次 轮 輪 에폭 에포크 эпоха época époque",
    "step": "ステップ 步数 步 스텝 шаг",
    "iteration": "イテレーション 反復 迭代 반복 итерация itération iteración",
    "episode": "エピソード 回合 에피소드 эпизод",
}

_ENGLISH = {word: name for name, words in _WORDS.items() for word in words.split()}

_ANY_WORD = "|".join(sorted(_ENGLISH, key=len, reverse=True))

_NAME = re.compile(rf"(?:(?:{_ANY_WORD})集?の?)+", re.IGNORECASE)
_ONE = re.compile(_ANY_WORD)

_COUNTED = re.compile(r"第\s?(\d+(?:/\d+)?)\s?(?:次|个|個)?\s?(epoch|step|iteration|episode)")
"""A counter with its number before its name."""

_WIDE = str.maketrans("，：；（）［］【】％＝", ",:;()[][]%=")

_LETTERS = re.compile(r"[ÉÓÍéóíãçî\u0400-\u04ff\u3000-\u9fff\uac00-\ud7af\uff00-\uffef]")
"""Letters of these words, and wide punctuation: a line without any stays as it is, as bars do."""


def in_english(line: str) -> str:
    """Return a line with English names for what it measures and counts, and with punctuation marks
    of ASCII."""
    if not _LETTERS.search(line):
        return line
    line = _NAME.sub(_translated, line.translate(_WIDE))
    return _COUNTED.sub(r"\2 \1", line)


def _translated(name: re.Match[str]) -> str:
    words = "_".join(_ENGLISH[word] for word in _ONE.findall(name[0].lower())) or name[0]
    before, behind = name.string[: name.start()][-1:], name.string[name.end() :][:1]
    return f"{' ' * before.isalnum()}{words}{' ' * behind.isalnum()}"
