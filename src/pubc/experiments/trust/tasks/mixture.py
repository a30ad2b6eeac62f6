"""A pile of a built-in task before it is recorded: groups of behaviours, and what is asked."""

from __future__ import annotations

from dataclasses import dataclass

from pubc.experiments.trust.changes import Change
from pubc.experiments.trust.pile import Asked, ask
from pubc.experiments.trust.question import Question
from pubc.experiments.trust.tasks.arm_tracing import ArmTracing
from pubc.experiments.trust.tasks.behaviour import EXPERT, Behaviour, Persona, faulty
from pubc.experiments.trust.tasks.built_in import Task
from pubc.experiments.trust.tasks.pick_place import PickPlace
from pubc.experiments.trust.tasks.recording import Setting, record
from pubc.streams import stream

__all__ = ["TASKS", "Group", "Mixture", "crowd"]

TASKS: dict[str, Task] = {task.name: task for task in (PickPlace(), ArmTracing())}
"""The built-in tasks by name."""


@dataclass(frozen=True, slots=True)
class Group:
    """Some trajectories of one behaviour."""

    behaviour: Behaviour
    """Who acts."""
    count: int
    """How many trajectories."""
    only: tuple[int, ...] = ()
    """Which kinds of the task are played; all if empty."""
    change: Change | None = None
    """What is done to these trajectories after they are recorded."""


def crowd(
    experts: int, others: int, faults: tuple[str, ...], expert: Behaviour = EXPERT
) -> tuple[Group, ...]:
    """So many trajectories of the expert and, in all, so many with one of the faults each."""
    each, more = divmod(others, len(faults))
    rest = [
        Group(faulty(fault, expert), each + (number < more)) for number, fault in enumerate(faults)
    ]
    return (Group(expert, experts), *(group for group in rest if group.count))


@dataclass(frozen=True, slots=True)
class Mixture:
    """A pile of a built-in task; calling it with family and name makes the question."""

    task: str
    """Which task."""
    groups: tuple[Group, ...]
    """Who is in the pile."""
    asked: Asked
    """What is asked."""
    kinds: int = 1
    """How many kinds of the task there are."""
    steps: int | None = None
    """Steps of a trajectory; those of the task if omitted."""
    discrete: bool = False
    """Whether actions are numbers of a menu."""
    change: Change | None = None
    """What is done to the whole pile before it is shuffled."""

    def __call__(self, family: str, name: str) -> Question:
        """Record the groups and ask; every question is about another person's hand."""
        person = Persona.draw(stream(0, family, name, "persona"))
        parts = []
        for number, group in enumerate(self.groups):
            rng = stream(0, family, name, number)
            setting = Setting(TASKS[self.task], self.kinds, group.only, self.steps, self.discrete)
            made = record(setting, group.behaviour.of(person), group.count, rng)
            changed = made if group.change is None else group.change(made, rng)
            parts.append(changed if self.change is None else self.change(changed, rng))
        return ask((family, name), parts, self.asked, stream(0, family, name, "order"))
