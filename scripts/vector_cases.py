"""Generates the conformance cases that put sdks/vectors on the wire. Run after changing a vector.

Each entry becomes a variant of a case, unless no request shows it: in fusion, cases without a score
for a chunk in the vector leg, which ranks every chunk; in hash, numbers of texts without a term.
"""

import yaml

from vector_reader_cases import prompts, reader
from vector_score_cases import dates, fusion
from vector_steps import ROOT, vectors
from vector_text_cases import chunking, front_matter, hash_cases, term_cases

__all__ = ["vectors"]

TARGET = ROOT / "eval/memconform/conformance/cases/25-vectors.yaml"


def render() -> str:
    """Render the case file."""
    cases = [*front_matter(), *term_cases(), *hash_cases(), *chunking(), *dates(), *fusion(),
             *reader(), *prompts()]  # fmt: skip
    head = "# Made by scripts/vector_cases.py from sdks/vectors; do not edit.\n"
    return head + yaml.dump(cases, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, _: object) -> bool:
        return True


if __name__ == "__main__":
    TARGET.write_text(render(), encoding="utf-8")
    print(TARGET.name)
