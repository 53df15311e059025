"""The plan as text for people: tasks by stage, their operators, and the exchanges between them."""

from __future__ import annotations

from collections.abc import Iterator

from rekindle.common.typeinfo import TypeInformation
from rekindle.graph.nodes import Chain, JobPlan, OperatorNode, StreamEdge


def explain(plan: JobPlan) -> str:
    """The plan as text: stages, tasks, slots, types, and pickled streams.

    >>> from rekindle.datastream import StreamExecutionEnvironment
    >>> from rekindle.graph.build import build_plan
    >>> env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
    >>> _ = env.from_sequence(1, 10).key_by(lambda n: n % 3, key_type=int).sum(0).print()
    >>> print(explain(build_plan(env._program("sums"))))
    Job 'sums': STREAMING, 2 tasks in 2 stages, 2 slots
    <BLANKLINE>
    Stage 0
      Source: Sequence Source (parallelism 2, slots 0 1)
        [0] Source: Sequence Source: source_reader -> Long (msgpack)
        => HASH to [1] Sum
    <BLANKLINE>
    Stage 1
      Sum -> Sink: Print to Std. Out (parallelism 2, slots 0 1)
        [1] Sum: reduce, keyed by Long, 128 key groups -> Long (msgpack)
        [2] Sink: Print to Std. Out: sink_function
    <BLANKLINE>
    Pickled: nothing
    """
    mode = "BATCH" if plan.batch else "STREAMING"
    lines = [
        f"Job '{plan.job_name}': {mode}, {_count(len(plan.chains), 'task')} in {_count(plan.stages, 'stage')}, "
        f"{_count(plan.slots, 'slot')}"
    ]
    for stage in range(plan.stages):
        lines += ["", f"Stage {stage}"]
        for chain in plan.chains:
            if chain.stage == stage:
                lines += [f"  {line}" for line in _chain(plan, chain)]
    pickled = plan.pickled_parts()
    lines += ["", *(["Pickled:", *(f"  {part}" for part in pickled)] if pickled else ["Pickled: nothing"])]
    return "\n".join(lines)


def _chain(plan: JobPlan, chain: Chain) -> Iterator[str]:
    slots = " ".join(str(plan.placement[chain.id, subtask]) for subtask in range(chain.parallelism))
    yield f"{chain.name} (parallelism {chain.parallelism}, slots {slots})"
    for node_id in chain.nodes:
        yield f"  {_node(plan.nodes[node_id])}"
    for edge in plan.edges:
        if edge.source in chain.nodes and edge.target not in chain.nodes:
            yield f"  {_edge(plan, chain, edge)}"


def _node(node: OperatorNode) -> str:
    keyed = ""
    if node.is_keyed:
        # Keys travel as their canonical bytes (I11), whether or not their type was declared.
        by = "" if node.key_type is None else f" by {node.key_type}"
        keyed = f", keyed{by}, {node.max_parallelism} key groups"
    output = "" if node.kind.is_sink else f" -> {_type(node.output_type)}"
    sides = "".join(f"; side output '{tag}' {_type(side)}" for tag, side in node.side_output_types.items())
    uid = f", uid '{node.user_uid}'" if node.user_uid is not None else ""
    return f"[{node.id}] {node.name}: {node.kind.value}{keyed}{uid}{output}{sides}"


def _edge(plan: JobPlan, chain: Chain, edge: StreamEdge) -> str:
    sender = "" if len(chain.nodes) == 1 else f" from [{edge.source}]"
    side = "" if edge.tag is None else f" of side output '{edge.tag}'"
    return f"=> {edge.partitioning.value}{side}{sender} to [{edge.target}] {plan.nodes[edge.target].name}"


def _type(type_info: TypeInformation | None) -> str:
    return "undeclared (pickled)" if type_info is None else type_info.describe()


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
