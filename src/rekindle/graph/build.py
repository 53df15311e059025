"""Builds the plan of a program: decides everything that the program left open, and refuses impossible jobs by name."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from rekindle import config
from rekindle.common.watermark_strategy import WatermarkStrategy
from rekindle.datastream.checkpointing_mode import CheckpointingMode
from rekindle.datastream.execution_mode import RuntimeExecutionMode
from rekindle.datastream.transformations import Program, Transformation, Upstream, with_inputs
from rekindle.datastream.vocabulary import Boundedness
from rekindle.errors import GraphError
from rekindle.graph.chaining import chain_name, chain_operators
from rekindle.graph.layout import assign_stages, default_max_parallelism, place
from rekindle.graph.nodes import Chain, JobPlan, OperatorKind, OperatorNode, Partitioning, StreamEdge
from rekindle.graph.settings import JobSettings
from rekindle.graph.timestamp_use import source_timestamps_are_read
from rekindle.graph.uid import assign_uids, uid_hash

_LOG = logging.getLogger("rekindle.graph")
_DEFAULT_GROUP = "default"


def build_plan(
    program: Program,
    default_parallelism: int | None = None,
    stored_max_parallelism: Mapping[str, int] | None = None,
) -> JobPlan:
    """Build the plan of a program. `default_parallelism` is the cluster's, for operators that set none.

    `stored_max_parallelism` has the number of key groups, by uid, in the state that the job starts from: operators
    without a maximum parallelism of their own keep that number.

    >>> from rekindle.datastream import StreamExecutionEnvironment
    >>> env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
    >>> _ = env.from_sequence(1, 10).key_by(lambda n: n % 3).sum(0).print()
    >>> plan = build_plan(env._program("sums"))
    >>> [chain.name for chain in plan.chains], plan.stages, plan.slots
    (['Source: Sequence Source', 'Sum -> Sink: Print to Std. Out'], 2, 2)
    """
    transformations = _with_watermarks(_operators(program))
    batch = _is_batch(program, transformations)
    parallelism = program.parallelism or default_parallelism or program.default_local_parallelism
    nodes = _nodes(program, transformations, parallelism, stored_max_parallelism or {})
    _refuse_shared_names(program.job_name, nodes)
    edges = _edges(transformations, nodes)
    nodes = _with_timestamp_use(_with_groups(transformations, nodes, edges), edges)
    chains = _chains(program, nodes, edges)
    slots, placement = place([chain.parallelism for chain in chains])
    settings = JobSettings.of(program.configuration, batch=batch)
    files = {file.name: file.path for file in program.cached_files}
    plan = JobPlan(program.job_name, nodes, edges, chains, slots, placement, settings, batch, files)
    _refuse_or_log_pickled(plan)
    _log_checkpoint_mode(program)
    return plan


def _refuse_shared_names(job_name: str, nodes: Sequence[OperatorNode]) -> None:
    """Refuse two sinks with a name that only one may have: each would end the other's output."""
    owners: dict[str, OperatorNode] = {}
    for node in nodes:
        ask = getattr(node.function, "exclusive_name", None) if node.kind is OperatorKind.SINK else None
        name = ask(job_name) if callable(ask) else None
        if name is None:
            continue
        if name in owners:
            raise GraphError(f"The sinks '{owners[name].name}' and '{node.name}' of job '{job_name}' have {name}.")
        owners[name] = node


def _refuse_or_log_pickled(plan: JobPlan) -> None:
    parts = plan.pickled_parts()
    if parts and not plan.settings.pickle_allowed:
        raise GraphError(
            f"state.pickle is 'refuse', but the job would pickle {'; '.join(parts)}: declare their types "
            "(output_type=, type_info=), or set state.pickle to 'allow'."
        )
    for part in parts:
        _LOG.info("Job '%s' pickles %s.", plan.job_name, part)


def _log_checkpoint_mode(program: Program) -> None:
    mode = program.configuration.get(config.CHECKPOINT_MODE)
    if mode == CheckpointingMode.AT_LEAST_ONCE.name:
        _LOG.info(
            "Job '%s' asks for %s: checkpoints are consistent cuts here, so its state is exactly once.",
            program.job_name,
            mode,
        )


# -- operators of the program -----------------------------------------------------------------------------------------


def _operators(program: Program) -> list[Transformation]:
    """All operators of the job, without sources that no operator reads."""
    everything = with_inputs(program.transformations)
    read = {upstream.transformation.number for each in everything for streams in each.inputs for upstream in streams}
    used = [each for each in everything if each.number in read or not each.kind.is_source]
    if not used:
        raise GraphError("The job has no operators: add at least one after a source, for example print().")
    for transformation in used:
        if not transformation.kind.is_source and not any(transformation.inputs):
            raise GraphError(f"Operator '{transformation.name}' has no input: every stream begins at a source.")
    return used


def _with_watermarks(transformations: Sequence[Transformation]) -> list[Transformation]:
    """Insert an operator for the watermarks behind each source with a watermark strategy, of the same parallelism."""
    uids = assign_uids([each for each in transformations if each.kind.is_source])
    result: list[Transformation] = []
    assigners: dict[int, Transformation] = {}
    for each in transformations:
        inputs = tuple(tuple(_redirected(upstream, assigners) for upstream in streams) for streams in each.inputs)
        strategy = each.watermark_strategy or WatermarkStrategy.no_watermarks()
        result.append(replace(each, inputs=inputs))
        # A DataFrame's rows come from Spark's own tasks: this is the first operator in a slot that takes them in.
        if each.kind is OperatorKind.SOURCE_DATAFRAME or (each.kind.is_source and _needs_operator(strategy)):
            assigners[each.number] = _assigner(result[-1], strategy, uids[each.number])
            result.append(assigners[each.number])
    return result


def _needs_operator(strategy: WatermarkStrategy) -> bool:
    return strategy.kind != "none" or strategy.timestamp_assigner is not None or strategy.idle_timeout_ms is not None


def _redirected(upstream: Upstream, assigners: Mapping[int, Transformation]) -> Upstream:
    """The stream behind the source's watermarks; the source writes its side outputs there too."""
    assigner = assigners.get(upstream.transformation.number)
    return upstream if assigner is None else replace(upstream, transformation=assigner)


def _assigner(source: Transformation, strategy: WatermarkStrategy, source_uid: str) -> Transformation:
    return Transformation(
        OperatorKind.TIMESTAMPS,
        "Timestamps/Watermarks",
        strategy,
        inputs=((Upstream(source),),),
        output_type=source.output_type,
        side_outputs=source.side_outputs,
        parallelism=source.parallelism,
        max_parallelism=source.max_parallelism,
        non_parallel=source.non_parallel,
        slot_sharing_group=source.slot_sharing_group,
        uid_hash=uid_hash("watermarks", source_uid),
    )


def _is_batch(program: Program, transformations: Sequence[Transformation]) -> bool:
    unbounded = [each for each in transformations if each.boundedness is Boundedness.CONTINUOUS_UNBOUNDED]
    if program.runtime_mode is RuntimeExecutionMode.BATCH and unbounded:
        raise GraphError(
            f"Runtime mode BATCH needs bounded sources, but '{unbounded[0].name}' may never end: use STREAMING or "
            "AUTOMATIC, or override boundedness() if it does end."
        )
    return program.runtime_mode is RuntimeExecutionMode.BATCH or (
        program.runtime_mode is RuntimeExecutionMode.AUTOMATIC and not unbounded
    )


# -- nodes ------------------------------------------------------------------------------------------------------------


def _nodes(
    program: Program, transformations: Sequence[Transformation], default_parallelism: int, stored: Mapping[str, int]
) -> tuple[OperatorNode, ...]:
    uids = assign_uids(transformations, program.execution_config.has_auto_generated_uids_enabled())
    parallelisms: dict[int, int] = {}
    nodes = []
    for index, each in enumerate(transformations):
        parallelism = parallelisms[each.number] = _parallelism(each, parallelisms, default_parallelism)
        uid = uids[each.number]
        maximum = each.max_parallelism or program.max_parallelism or _unset_maximum(parallelism, stored.get(uid))
        nodes.append(_node(index, each, uid, parallelism, maximum))
    return tuple(nodes)


def _unset_maximum(parallelism: int, stored: int | None) -> int:
    """As many key groups as the stored state has; where these are too few, the restore refuses with a message."""
    return stored if stored is not None and parallelism <= stored else default_max_parallelism(parallelism)


def _parallelism(transformation: Transformation, known: Mapping[int, int], default: int) -> int:
    if transformation.parallelism is not None:
        return transformation.parallelism
    if transformation.kind is OperatorKind.COLLECT:
        # The parallelism of a collect sink is invisible to users: with its input's it needs no exchange.
        return known[transformation.inputs[0][0].transformation.number]
    return default


def _node(index: int, transformation: Transformation, uid: str, parallelism: int, maximum: int) -> OperatorNode:
    if parallelism > maximum:
        raise GraphError(
            f"Operator '{transformation.name}' has parallelism {parallelism}, above its maximum of {maximum}."
        )
    return OperatorNode(
        id=index,
        uid=uid,
        user_uid=transformation.uid,
        name=_name(transformation),
        kind=transformation.kind,
        function=transformation.function,
        parallelism=parallelism,
        max_parallelism=maximum,
        output_type=transformation.output_type,
        side_output_types=dict(transformation.side_outputs),
        key_selectors=transformation.key_selectors,
        key_type=transformation.key_type,
        details=transformation.details,
        chaining=transformation.chaining,
        slot_sharing_group=transformation.slot_sharing_group or _DEFAULT_GROUP,
        description=transformation.description or transformation.name,
    )


def _name(transformation: Transformation) -> str:
    if transformation.kind.is_source:
        return f"Source: {transformation.name}"
    if transformation.kind.is_sink:
        return f"Sink: {transformation.name}"
    return transformation.name


def _with_groups(
    transformations: Sequence[Transformation], nodes: Sequence[OperatorNode], edges: Sequence[StreamEdge]
) -> tuple[OperatorNode, ...]:
    """As in Flink, an operator without a slot sharing group takes that of its inputs, if they all share one."""
    groups: list[str] = []
    for node, transformation in zip(nodes, transformations, strict=True):
        of_inputs = {groups[edge.source] for edge in edges if edge.target == node.id}
        inherited = of_inputs.pop() if len(of_inputs) == 1 else _DEFAULT_GROUP
        groups.append(transformation.slot_sharing_group or inherited)
    return tuple(replace(node, slot_sharing_group=group) for node, group in zip(nodes, groups, strict=True))


def _with_timestamp_use(nodes: tuple[OperatorNode, ...], edges: Sequence[StreamEdge]) -> tuple[OperatorNode, ...]:
    return tuple(
        replace(node, timestamps_are_read=source_timestamps_are_read(node.id, nodes, edges))
        if node.kind.is_source
        else node
        for node in nodes
    )


# -- edges and chains -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Reading:
    """One operator reading one (side) output of another."""

    upstream: Upstream
    source: OperatorNode
    target: OperatorNode
    input_index: int


def _edges(transformations: Sequence[Transformation], nodes: Sequence[OperatorNode]) -> tuple[StreamEdge, ...]:
    node_of = {each.number: node for each, node in zip(transformations, nodes, strict=True)}
    readings = [
        _Reading(upstream, node_of[upstream.transformation.number], node_of[each.number], input_index)
        for each in transformations
        for input_index, streams in enumerate(each.inputs)
        for upstream in streams
    ]
    return tuple(_edge(index, reading) for index, reading in enumerate(readings))


def _edge(index: int, reading: _Reading) -> StreamEdge:
    upstream, source = reading.upstream, reading.source
    tag = upstream.tag
    return StreamEdge(
        id=index,
        source=source.id,
        target=reading.target.id,
        input_index=reading.input_index,
        partitioning=_partitioning(reading),
        type_info=source.output_type if tag is None else source.side_output_types[tag],
        tag=tag,
        key_selector=upstream.key_selector,
        partitioner=upstream.partitioner,
    )


def _partitioning(reading: _Reading) -> Partitioning:
    wanted, source, target = reading.upstream.partitioning, reading.source, reading.target
    same = source.parallelism == target.parallelism
    if wanted is None:
        return Partitioning.FORWARD if same else Partitioning.REBALANCE
    if wanted is Partitioning.FORWARD and reading.upstream.key_selector is not None:
        _check_same_key_groups(source, target)
    elif wanted is Partitioning.FORWARD and not same:
        raise GraphError(
            f"forward() from '{source.name}' to '{target.name}' needs the same parallelism on both sides, not "
            f"{source.parallelism} and {target.parallelism}: set it, or use rescale() or rebalance()."
        )
    return wanted


def _check_same_key_groups(source: OperatorNode, target: OperatorNode) -> None:
    """Refuse `reinterpret_as_keyed_stream` unless each key group is on the same subtask of both operators."""
    # An upstream operator that is not keyed has no key groups to compare.
    for what in ("parallelism", "max_parallelism") if source.is_keyed else ("parallelism",):
        here, there = getattr(source, what), getattr(target, what)
        if here != there:
            raise GraphError(
                f"reinterpret_as_keyed_stream() from '{source.name}' to '{target.name}' needs the same {what} on both "
                f"sides, not {here} and {there}: set it, or use key_by()."
            )


def _chains(program: Program, nodes: Sequence[OperatorNode], edges: Sequence[StreamEdge]) -> tuple[Chain, ...]:
    members = chain_operators(
        nodes,
        edges,
        enabled=program.configuration.get(config.OPERATOR_CHAINING),
        across_max_parallelism=program.configuration.get(config.CHAIN_DIFFERENT_MAX_PARALLELISM),
    )
    stages = assign_stages(members, edges)
    return tuple(
        Chain(
            id=index,
            nodes=chain,
            name=chain_name(chain, nodes, edges),
            parallelism=nodes[chain[0]].parallelism,
            max_parallelism=nodes[chain[0]].max_parallelism,
            stage=stage,
        )
        for index, (chain, stage) in enumerate(zip(members, stages, strict=True))
    )
