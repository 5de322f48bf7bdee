"""The text around a question: a separator after it, or the chat template of the model."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from placevalue.common.errors import ConfigError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_QUESTION = "placevalue puts the question here"


@dataclass(frozen=True)
class Prompt:
    """How a decoder-only model is asked.

    Example:
        >>> encode_pairs(tokenizer, ["2 + 2?"], ["4"], prompt=Prompt(chat=True))  # doctest: +SKIP
    """

    chat: bool = False
    """Ask each question as the user of a conversation, in the tokenizer's chat template."""
    system: str | None = None
    """The system message of the conversation; null leaves it to the template."""

    def __post_init__(self) -> None:
        if self.system is not None and not self.chat:
            raise ConfigError("prompt.system has no effect without prompt.chat: set it to true, or leave both out")


SEPARATED = Prompt()
"""The question, then a separator."""


def chat_parts(tokenizer: "PreTrainedTokenizerBase", prompt: Prompt) -> tuple[str, str]:
    """The text before and after a question in the chat template, up to where the answer begins."""
    from jinja2 import TemplateError

    if not tokenizer.chat_template:
        raise ConfigError(
            f"prompt.chat: the tokenizer {tokenizer.name_or_path!r} has no chat template: take an instruction-tuned "
            "model, set tokenizer.chat_template, or leave prompt.chat out"
        )
    messages = [] if prompt.system is None else [{"role": "system", "content": prompt.system}]
    messages.append({"role": "user", "content": _QUESTION})
    try:
        text = str(tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True))
    except TemplateError as error:
        raise ConfigError(f"the chat template of {tokenizer.name_or_path!r} refuses this: {error}") from None
    before, found, after = text.partition(_QUESTION)
    if not found or _QUESTION in after:
        raise ConfigError(
            f"the chat template of {tokenizer.name_or_path!r} does not write the question once as it is: {text!r}. "
            "Set another tokenizer.chat_template"
        )
    return before, after
