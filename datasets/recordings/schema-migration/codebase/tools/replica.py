"""A model of the replica: it applies a fixed number of row changes each second."""

from dataclasses import dataclass, field

from tollwick.config import Replica


@dataclass
class ReplicaModel:
    """Takes the writer's row changes, second by second."""

    settings: Replica
    backlog: int = 0
    worst_backlog: int = 0
    late_seconds: int = 0
    history: list[tuple[int, int]] = field(default_factory=list)

    @property
    def lag_s(self) -> float:
        return self.backlog / self.settings.apply_rows_per_s

    def second(self, at: int, changed: int) -> None:
        """Take what the writer changed in one second, then apply what can be applied."""
        self.backlog += changed
        self.worst_backlog = max(self.worst_backlog, self.backlog)
        if self.lag_s > self.settings.max_lag_s:
            self.late_seconds += 1
            self.history.append((at, self.backlog))
        self.backlog = max(0, self.backlog - self.settings.apply_rows_per_s)

    def report(self) -> str:
        worst = self.worst_backlog / self.settings.apply_rows_per_s
        return (
            f"replica: worst lag {worst:.1f} s, limit {self.settings.max_lag_s} s, "
            f"seconds above it {self.late_seconds}, backlog now {self.backlog} rows"
        )
