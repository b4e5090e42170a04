import pytest
from hypothesis import given
from hypothesis import strategies as st

from memconform.datasets.reasoning_blocks import strip_reasoning


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("<think>May or June? May.</think>In May.", "In May."),
        ("\n<THINK>\nMay.\n</THINK>\n\nIn May.\n", "In May."),
        ("<thinking>May.</thinking> In May.", "In May."),
        ("<reasoning>May.</reasoning> In May.", "In May."),
        ("[THINK]May.[/THINK]In May.", "In May."),
        # Qwen without reasoning, and a second block.
        ("<think>\n\n</think>\n\n<think>May.</think>In May.", "In May."),
        ("Let me see.\n<think>May.</think>\nIn May.", "Let me see.\n\nIn May."),
        # The opening tag is in the prompt.
        ("May or June? May.\n</think>\n\nIn May.", "In May."),
        ("May or June? May.</think>\nIn May.", "In May."),
        # The reasoning speaks of the tag, which opens nothing.
        ("<think>I write <think> first.</think>In May.", "In May."),
        # Cut before the answer.
        ("<think>May or June? May, bec", ""),
        ("<think>One.</think> <think>Two", ""),
        # Reasoning alone.
        ("<think>May.</think>", ""),
        # No block.
        ("In May.", "In May."),
        (" In May.\n", " In May.\n"),
        ("The tag <think> begins it.", "The tag <think> begins it."),
        ("The tag </think> ends it.", "The tag </think> ends it."),
        ("<thinker>May</thinker>", "<thinker>May</thinker>"),
        ("", ""),
    ],
)
def test_reasoning_is_stripped(text: str, answer: str) -> None:
    assert strip_reasoning(text) == answer


@given(
    st.text(alphabet="ab <>/\n"),
    st.text(alphabet="ab \n", min_size=1).filter(lambda text: bool(text.strip())),
)
def test_what_follows_a_block_is_the_answer(reasoning: str, answer: str) -> None:
    assert strip_reasoning(f"<think>{reasoning}</think>{answer}") == answer.strip()
    assert strip_reasoning(f"{reasoning}\n</think>\n{answer}") == answer.strip()


@given(st.lists(st.sampled_from(["<think>", "[THINK]", "a", " ", "\n"])))
def test_a_text_that_ends_no_block_is_unchanged_unless_it_begins_one(parts: list[str]) -> None:
    text = "".join(parts)
    begins = text.lstrip().startswith(("<think>", "[THINK]"))
    assert strip_reasoning(text) == ("" if begins else text)
