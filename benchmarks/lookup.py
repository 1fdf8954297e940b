"""How far the look-up agrees with the language models that read the states and graded the answers.

    python -m benchmarks.lookup [LOGS]    # docs/findings/logs by default

Every fact of every sample in which a model gave its word is looked up again, in the answer and in
the state, as the log contains them. A reader's `derivable` counts as in the state.
"""

import argparse
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from inspect_ai.log import list_eval_logs, read_eval_log

from compression_eval.fixtures.conversation import decoded_text
from compression_eval.record import recorded_in
from compression_eval.text.lookup import Text

LOGS = Path(__file__).parents[1] / "docs" / "findings" / "logs"


def words(logs: Path) -> Iterator[tuple[str, bool, bool]]:
    """Yield by whose word, whether it says that the fact is there, and whether look-up finds it."""
    for info in list_eval_logs(str(logs)):
        for sample in read_eval_log(info).samples or []:
            score = (sample.scores or {}).get("fact_retention")
            recorded = recorded_in(sample)
            if score is None or recorded is None:
                continue
            rows = {row["fact"]: row for row in (score.metadata or {})["facts"]}
            answer = Text(recorded.record.answer.text if recorded.record.answer else "")
            state = Text("\n".join(map(decoded_text, recorded.context)))
            for fact in recorded.record.probe.expected_facts:
                row = rows.get(fact.fact, {})
                if fact.derived:
                    continue
                if row.get("in_answer_read"):
                    stated = row["in_answer_read"] == "stated"
                    yield "grader", stated, answer.has_any(fact.forms)
                if row.get("in_state_read"):
                    yield "reader", row["in_state_read"] != "absent", state.has_any(fact.forms)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("logs", type=Path, nargs="?", default=LOGS)
    counts = Counter(words(parser.parse_args().logs))
    for by in ("grader", "reader"):
        total = sum(n for (who, _, _), n in counts.items() if who == by)
        same = counts[by, True, True] + counts[by, False, False]
        print(
            f"{by}: {total} facts, look-up agrees on {same} ({same / total:.1%}); "
            f"misses {counts[by, True, False]}, finds {counts[by, False, True]} that are not there"
        )
