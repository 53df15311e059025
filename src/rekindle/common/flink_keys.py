"""The configuration keys of Flink 2.x and 1.20, deprecated spellings included, grouped by their first word.

The 2.x names come from Flink 2.3.0's option classes. Of some 140 names that only 1.x had, most of the network stack's
and RocksDB metrics' were checked against its pages; the rest are from memory: a wrong name warns, a missing one fails.
"""

from __future__ import annotations

import difflib
import re

__all__ = ["FLINK_KEYS", "FLINK_KEY_PATTERNS", "closest_first_word", "closest_keys", "is_flink_key"]

_WITHOUT_DOT = ("cleanup-strategy", "external-resources", "high-availability", "restart-strategy", "scheduler-mode")
_BY_FIRST_WORD = {
    "akka": """
        ask.callstack ask.timeout client-socket-worker-pool.pool-size-factor client-socket-worker-pool.pool-size-max
        client-socket-worker-pool.pool-size-min client.timeout fork-join-executor.parallelism-factor
        fork-join-executor.parallelism-max fork-join-executor.parallelism-min framesize jvm-exit-on-fatal-error
        log.lifecycle.events lookup.timeout retry-gate-closed-for rpc.force-invocation-serialization
        server-socket-worker-pool.pool-size-factor server-socket-worker-pool.pool-size-max
        server-socket-worker-pool.pool-size-min ssl.enabled startup-timeout tcp.timeout throughput
        transport.heartbeat.interval transport.heartbeat.pause transport.threshold watch.heartbeat.interval
        watch.heartbeat.pause watch.threshold""",
    "application-result-store": "delete-on-commit storage-path",
    "blob": """
        client.connect.timeout client.socket.timeout fetch.backlog fetch.num-concurrent fetch.retries offload.minsize
        server.port service.cleanup.interval service.ssl.enabled storage.directory""",
    "classloader": """
        check-leaked-classloader fail-on-metaspace-oom-error parent-first-patterns parent-first-patterns.additional
        parent-first-patterns.default resolve-order""",
    "cleanup-strategy": """
        exponential-delay.attempts exponential-delay.initial-backoff exponential-delay.max-backoff fixed-delay.attempts
        fixed-delay.delay type""",
    "client": "heartbeat.interval heartbeat.timeout retry-period timeout",
    "cluster": """
        declarative-resource-management.enabled evenly-spread-out-slots fine-grained-resource-management.enabled id
        intercept-user-system-exit io-pool.size processes.halt-on-fatal-error registration.error-delay
        registration.initial-timeout registration.max-timeout registration.refused-registration-delay
        services.shutdown-timeout thread-dump.stacktrace-max-depth uncaught-exception-handling""",
    "collect-sink": "batch-size.max socket-timeout",
    "compiler": """
        delimited-informat.max-line-samples delimited-informat.max-sample-len delimited-informat.min-line-samples""",
    "completed-application-store": "cache-size expiration-time max-capacity type",
    "containerized": "heap-cutoff heap-cutoff-min heap-cutoff-ratio",
    "dstl": """
        dfs.base-path dfs.batch.persist-delay dfs.batch.persist-size-threshold dfs.compression.enabled
        dfs.discard.num-threads dfs.download.local-cache.idle-timeout-ms dfs.preemptive-persist-threshold
        dfs.upload.buffer-size dfs.upload.max-attempts dfs.upload.max-in-flight dfs.upload.next-attempt-delay
        dfs.upload.num-threads dfs.upload.retry-policy dfs.upload.timeout""",
    "env": """
        hadoop.conf.dir hbase.conf.dir java.default-opts.all java.default-opts.jobmanager java.default-opts.taskmanager
        java.home java.opts java.opts.all java.opts.client java.opts.historyserver java.opts.jobmanager
        java.opts.sql-gateway java.opts.taskmanager log.dir log.level log.max pid.dir ssh.opts
        stdout-err.redirect-to-file yarn.conf.dir""",
    "events": "reporters",
    "execution": """
        allow-client-job-configurations async-state.active-buffer-size async-state.active-buffer-timeout
        async-state.total-buffer-size attached batch-shuffle-mode batch-state-backend.enabled
        batch.adaptive.auto-parallelism.avg-data-volume-per-task
        batch.adaptive.auto-parallelism.default-source-parallelism batch.adaptive.auto-parallelism.enabled
        batch.adaptive.auto-parallelism.max-parallelism batch.adaptive.auto-parallelism.min-parallelism
        batch.adaptive.stream-graph-optimization.strategies batch.job-recovery.enabled
        batch.job-recovery.previous-worker.recovery.timeout batch.job-recovery.snapshot.min-pause
        batch.speculative.block-slow-node-duration batch.speculative.enabled batch.speculative.max-concurrent-executions
        buffer-timeout buffer-timeout.enabled buffer-timeout.interval checkpointing.aligned-checkpoint-timeout
        checkpointing.alignment-timeout checkpointing.approximate-local-recovery
        checkpointing.checkpoints-after-tasks-finish checkpointing.checkpoints-after-tasks-finish.enabled
        checkpointing.cleaner.parallel-mode checkpointing.create-subdir checkpointing.data-inline-threshold
        checkpointing.dir checkpointing.during-recovery.enabled checkpointing.externalized-checkpoint-retention
        checkpointing.file-merging.across-checkpoint-boundary checkpointing.file-merging.enabled
        checkpointing.file-merging.max-file-size checkpointing.file-merging.max-space-amplification
        checkpointing.file-merging.max-subtasks-per-file checkpointing.file-merging.pool-blocking
        checkpointing.incremental checkpointing.interval checkpointing.interval-during-backlog
        checkpointing.local-backup.dirs checkpointing.local-backup.enabled checkpointing.max-concurrent-checkpoints
        checkpointing.min-pause checkpointing.mode checkpointing.num-retained
        checkpointing.prefer-checkpoint-for-recovery checkpointing.recover-without-channel-state.checkpoint-id
        checkpointing.savepoint-dir checkpointing.snapshot-compression checkpointing.storage checkpointing.timeout
        checkpointing.tolerable-failed-checkpoints checkpointing.unaligned checkpointing.unaligned.enabled
        checkpointing.unaligned.forced checkpointing.unaligned.interruptible-timers.enabled
        checkpointing.unaligned.max-subtasks-per-channel-state-file
        checkpointing.unaligned.recover-output-on-downstream.enabled checkpointing.write-buffer-size job-listeners
        job-status-changed-listeners program-config.enabled program-config.wildcards runtime-mode savepoint-restore-mode
        savepoint.ignore-unclaimed-state savepoint.path shutdown-on-application-finish shutdown-on-attached-exit
        sort-keyed-partition.memory sort-partition.memory sorted-inputs.enabled sorted-inputs.memory
        state-recovery.approximate-local-recovery state-recovery.claim-mode state-recovery.from-local
        state-recovery.ignore-unclaimed-state state-recovery.path state-recovery.without-channel-state.checkpoint-id
        submit-failed-job-on-application-error target terminate-application-on-any-job-terminated-exceptionally""",
    "execution-retries": "default delay",
    "fine-grained": "shuffle-mode.all-blocking",
    "fs": "allowed-fallback-filesystems default-scheme output.always-create-directory overwrite-files",
    "gs": """
        filesink.entropy.enabled http.connect-timeout http.read-timeout retry.init-rpc-timeout retry.max-attempt
        retry.max-rpc-timeout retry.rpc-timeout-multiplier retry.total-timeout writer.chunk.size
        writer.temporary.bucket.name""",
    "heartbeat": "interval rpc-failure-threshold timeout",
    "high-availability": """
        cluster-id job.delay jobmanager.port kubernetes.leader-election.lease-duration
        kubernetes.leader-election.renew-deadline kubernetes.leader-election.retry-period storageDir type
        zookeeper.client.acl zookeeper.client.authorization zookeeper.client.connection-timeout
        zookeeper.client.ensemble-tracker zookeeper.client.max-close-wait zookeeper.client.max-retry-attempts
        zookeeper.client.max-retry-wait zookeeper.client.retry-wait zookeeper.client.session-timeout
        zookeeper.client.simulated-session-expiration-percent zookeeper.client.tolerate-suspended-connections
        zookeeper.path.applications zookeeper.path.checkpoint-counter zookeeper.path.checkpoints
        zookeeper.path.execution-plans zookeeper.path.jobgraphs zookeeper.path.latch zookeeper.path.leader
        zookeeper.path.mesos-workers zookeeper.path.namespace zookeeper.path.root zookeeper.path.running-registry
        zookeeper.quorum zookeeper.storageDir""",
    "historyserver": """
        archive.clean-expired-applications archive.clean-expired-jobs archive.fs.dir archive.fs.refresh-interval
        archive.retained-applications archive.retained-jobs archive.retained-ttl log.jobmanager.url-pattern
        log.taskmanager.url-pattern web.address web.port web.refresh-interval web.ssl.enabled web.tmpdir""",
    "io": "tmp.dirs",
    "jmx": "server.port",
    "job-event": "store.write-buffer.flush-interval store.write-buffer.size",
    "job-manager": "max-attempts-history-size",
    "job-result-store": "delete-on-commit storage-path",
    "jobmanager": """
        adaptive-batch-scheduler.avg-data-volume-per-task adaptive-batch-scheduler.default-source-parallelism
        adaptive-batch-scheduler.max-parallelism adaptive-batch-scheduler.min-parallelism
        adaptive-batch-scheduler.speculative.block-slow-node-duration adaptive-batch-scheduler.speculative.enabled
        adaptive-batch-scheduler.speculative.max-concurrent-executions
        adaptive-scheduler.executing.cooldown-after-rescaling
        adaptive-scheduler.executing.resource-stabilization-timeout adaptive-scheduler.max-delay-for-scale-trigger
        adaptive-scheduler.min-parallelism-increase adaptive-scheduler.prefer-minimal-taskmanagers
        adaptive-scheduler.rescale-trigger.max-checkpoint-failures adaptive-scheduler.rescale-trigger.max-delay
        adaptive-scheduler.resource-stabilization-timeout adaptive-scheduler.resource-wait-timeout
        adaptive-scheduler.scale-on-failed-checkpoints-count adaptive-scheduler.scaling-interval.max
        adaptive-scheduler.scaling-interval.min adaptive-scheduler.submission.resource-stabilization-timeout
        adaptive-scheduler.submission.resource-wait-timeout archive.fs.dir bind-host execution.attempts-history-size
        execution.failover-strategy failure-enrichers future-pool.size heap.mb heap.size io-pool.size
        memory.enable-jvm-direct-memory-limit memory.flink.size memory.heap.size memory.jvm-metaspace.size
        memory.jvm-overhead.fraction memory.jvm-overhead.max memory.jvm-overhead.min memory.off-heap.size
        memory.process.size partition.hybrid.partition-data-consume-constraint partition.release-during-job-execution
        resource-id retrieve-taskmanager-hostname rpc.address rpc.bind-port rpc.port scheduler
        task-deployment.offload-shuffle-descriptors-to-blob-server.threshold-num tdd.offload.minsize
        web.access-control-allow-origin web.address web.backpressure.cleanup-interval
        web.backpressure.delay-between-samples web.backpressure.num-samples web.backpressure.refresh-interval
        web.checkpoints.history web.history web.log.path web.port web.refresh-interval web.ssl.enabled web.submit.enable
        web.tmpdir web.upload.dir""",
    "jobstore": "cache-size expiration-time max-capacity type",
    "kubernetes": """
        artifacts.local-upload-enabled artifacts.local-upload-overwrite artifacts.local-upload-target
        client.io-pool.size client.user-agent cluster-id config.file container.image container.image.pull-policy
        container.image.pull-secrets container.image.ref context decorator.hadoop-conf-mount.enabled
        decorator.kerberos-mount.enabled entry.path env.secretKeyRef flink.conf.dir flink.log.dir
        hadoop.conf.config-map.name hostnetwork.enabled internal-service.annotations internal-service.labels
        jobmanager.annotations jobmanager.cpu jobmanager.cpu.amount jobmanager.cpu.limit-factor
        jobmanager.entrypoint.args jobmanager.labels jobmanager.memory.limit-factor jobmanager.node-selector
        jobmanager.owner.reference jobmanager.replicas jobmanager.service-account jobmanager.tolerations namespace
        node-name-label persistent-volume-claim-read-only persistent-volume-claims pod-template-file
        pod-template-file.default pod-template-file.jobmanager pod-template-file.taskmanager rest-service.annotations
        rest-service.exposed.node-port-address-type rest-service.exposed.type rest-service.labels secrets
        service-account taskmanager.annotations taskmanager.cpu taskmanager.cpu.amount taskmanager.cpu.limit-factor
        taskmanager.entrypoint.args taskmanager.labels taskmanager.memory.limit-factor taskmanager.node-selector
        taskmanager.service-account taskmanager.tolerations transactional-operation.initial-retry-delay
        transactional-operation.max-retries transactional-operation.max-retry-delay""",
    "library-cache-manager": "cleanup.interval",
    "local": "number-taskmanager",
    "materialized-table": """
        default-freshness.continuous default-freshness.full default-start-mode refresh-mode.freshness-threshold""",
    "metrics": """
        fetcher.update-interval internal.query-service.port internal.query-service.thread-priority job.status.enable
        latency.granularity latency.history-size latency.interval reporters scope.delimiter scope.jm scope.jm-job
        scope.jm-operator scope.jm.job scope.operator scope.task scope.tm scope.tm-job scope.tm.job system-resource
        system-resource-probing-interval""",
    "minicluster": "number-of-taskmanagers",
    "parallelism": "default",
    "pekko": """
        ask.callstack ask.timeout client-socket-worker-pool.pool-size-factor client-socket-worker-pool.pool-size-max
        client-socket-worker-pool.pool-size-min fork-join-executor.parallelism-factor fork-join-executor.parallelism-max
        fork-join-executor.parallelism-min framesize jvm-exit-on-fatal-error log.lifecycle.events lookup.timeout
        remote-fork-join-executor.parallelism-factor remote-fork-join-executor.parallelism-max
        remote-fork-join-executor.parallelism-min retry-gate-closed-for rpc.force-invocation-serialization
        server-socket-worker-pool.pool-size-factor server-socket-worker-pool.pool-size-max
        server-socket-worker-pool.pool-size-min ssl.enabled startup-timeout tcp.timeout throughput""",
    "pipeline": """
        auto-generate-uids auto-type-registration auto-watermark-interval cached-files
        cep.sharedbuffer.cache.entry-slots cep.sharedbuffer.cache.event-slots cep.sharedbuffer.cache.statistics-interval
        classpaths closure-cleaner-level default-kryo-serializers force-avro force-kryo force-kryo-avro generic-types
        global-job-parameters jars jobvertex-parallelism-overrides max-parallelism name object-reuse operator-chaining
        operator-chaining.chain-operators-with-different-max-parallelism operator-chaining.enabled registered-kryo-types
        registered-pojo-types serialization-config sources.pause-until-first-checkpoint time-characteristic
        vertex-description-mode vertex-name-include-index-prefix watermark-alignment.allow-unaligned-source-splits
        watermark-alignment.buffer-size""",
    "plugin": "classloader.parent-first-patterns.additional classloader.parent-first-patterns.default",
    "process": "jobmanager.working-dir taskmanager.working-dir working-dir",
    "python": """
        archives client.executable executable execution-mode files fn-execution.arrow.batch.size
        fn-execution.buffer.memory.size fn-execution.bundle.size fn-execution.bundle.time
        fn-execution.framework.memory.size fn-execution.memory.managed fn-execution.streaming.enabled job-options
        logging.default.level logging.level.overrides loopback-server.address map-state.iterate-response-batch-size
        map-state.read-cache-size map-state.write-cache-size metric.enabled operator-chaining.enabled profile.enabled
        pythonpath requirements state.cache-size systemenv.enabled""",
    "query": """
        client.network-threads proxy.network-threads proxy.ports proxy.query-threads server.enable
        server.network-threads server.ports server.query-threads""",
    "queryable-state": """
        client.network-threads enable proxy.network-threads proxy.ports proxy.query-threads server.network-threads
        server.ports server.query-threads""",
    "recovery": """
        jobmanager.port mode zookeeper.client.connection-timeout zookeeper.client.max-retry-attempts
        zookeeper.client.retry-wait zookeeper.client.session-timeout zookeeper.path.jobgraphs zookeeper.path.namespace
        zookeeper.path.root zookeeper.quorum zookeeper.storageDir""",
    "resourcemanager": """
        job.timeout previous-worker.recovery.timeout rpc.port standalone.start-up-time start-worker.max-failure-rate
        start-worker.retry-interval taskmanager-registration.timeout taskmanager-timeout""",
    "rest": """
        address async.store-duration await-leader-timeout bind-address bind-port cache.checkpoint-statistics.size
        cache.checkpoint-statistics.timeout cache.execution-graph.timeout client.max-content-length connection-timeout
        flamegraph.cleanup-interval flamegraph.delay-between-samples flamegraph.enabled flamegraph.num-samples
        flamegraph.refresh-interval flamegraph.stack-depth idleness-timeout path port profiling.dir
        profiling.duration-max profiling.enabled profiling.history-size retry.delay retry.max-attempts
        server.max-content-length server.numThreads server.thread-priority url-prefix""",
    "restart-strategy": """
        exponential-delay.attempts-before-reset-backoff exponential-delay.backoff-multiplier
        exponential-delay.initial-backoff exponential-delay.jitter-factor exponential-delay.max-backoff
        exponential-delay.reset-backoff-threshold failure-rate.delay failure-rate.failure-rate-interval
        failure-rate.max-failures-per-interval fixed-delay.attempts fixed-delay.delay type""",
    "s3": """
        access-key endpoint entropy.key entropy.length path-style-access path.style.access secret-key
        upload.max.concurrent.uploads upload.min.part.size""",
    "savepoints": "state.backend.fs.dir",
    "security": """
        context.factory.classes delegation.tokens.enabled delegation.tokens.renewal.retry.backoff
        delegation.tokens.renewal.time-ratio kerberos.access.hadoopFileSystems kerberos.fetch.delegation-token
        kerberos.krb5-conf.path kerberos.login.contexts kerberos.login.keytab kerberos.login.principal
        kerberos.login.use-ticket-cache kerberos.relogin.period kerberos.tokens.renewal.retry.backoff
        kerberos.tokens.renewal.time-ratio keytab module.factory.classes principal ssl.algorithms
        ssl.close-notify-flush-timeout ssl.handshake-timeout ssl.internal.cert.fingerprint
        ssl.internal.close-notify-flush-timeout ssl.internal.enabled ssl.internal.handshake-timeout
        ssl.internal.key-password ssl.internal.keystore ssl.internal.keystore-password ssl.internal.keystore-type
        ssl.internal.session-cache-size ssl.internal.session-timeout ssl.internal.truststore
        ssl.internal.truststore-password ssl.internal.truststore-type ssl.key-password ssl.keystore
        ssl.keystore-password ssl.protocol ssl.provider ssl.rest.authentication-enabled ssl.rest.cert.fingerprint
        ssl.rest.enabled ssl.rest.key-password ssl.rest.keystore ssl.rest.keystore-password ssl.rest.keystore-type
        ssl.rest.truststore ssl.rest.truststore-password ssl.rest.truststore-type ssl.rest.verify-hostname
        ssl.session-cache-size ssl.session-timeout ssl.truststore ssl.truststore-password ssl.verify-hostname""",
    "shuffle-service-factory": "class",
    "sink": "committer.retries",
    "slot": "idle.timeout request.max-interval request.timeout",
    "slotmanager": """
        declare-needed-resource.delay max-total-resource.cpu max-total-resource.memory min-total-resource.cpu
        min-total-resource.memory number-of-slots.max number-of-slots.min redundant-taskmanager-num
        requirement-check.delay taskmanager-timeout""",
    "slow-task-detector": """
        check-interval execution-time.baseline-lower-bound execution-time.baseline-multiplier
        execution-time.baseline-ratio""",
    "sql-client": """
        display.color-schema display.max-column-width display.print-time-cost display.show-line-numbers
        execution.max-table-result.rows execution.result-mode verbose""",
    "sql-gateway": """
        endpoint.type session.check-interval session.idle-timeout session.max-num session.plan-cache.enabled
        session.plan-cache.size session.plan-cache.ttl worker.keepalive-time worker.threads.max worker.threads.min""",
    "state": """
        backend backend.async backend.changelog.enabled backend.changelog.max-failures-allowed
        backend.changelog.periodic-materialize.enabled backend.changelog.periodic-materialize.interval
        backend.changelog.storage backend.forst.block.blocksize backend.forst.block.cache-size
        backend.forst.block.metadata-blocksize backend.forst.bloom-filter.bits-per-key
        backend.forst.bloom-filter.block-based-mode backend.forst.cache.dir
        backend.forst.cache.lru.access-before-promote backend.forst.cache.lru.promote-limit
        backend.forst.cache.reserve-size backend.forst.cache.size-based-limit
        backend.forst.compaction.filter.periodic-compaction-time
        backend.forst.compaction.filter.query-time-after-num-entries backend.forst.compaction.level.max-size-level-base
        backend.forst.compaction.level.target-file-size-base backend.forst.compaction.level.use-dynamic-size
        backend.forst.compaction.style backend.forst.compression.per.level backend.forst.executor.inline-coordinator
        backend.forst.executor.inline-write backend.forst.executor.read-io-parallelism
        backend.forst.executor.write-io-parallelism backend.forst.files.open backend.forst.local-dir
        backend.forst.log.dir backend.forst.log.file-num backend.forst.log.level backend.forst.log.max-file-size
        backend.forst.memory.fixed-per-slot backend.forst.memory.fixed-per-tm backend.forst.memory.high-prio-pool-ratio
        backend.forst.memory.managed backend.forst.memory.partitioned-index-filters
        backend.forst.memory.write-buffer-ratio backend.forst.metrics.block-cache-hit
        backend.forst.metrics.block-cache-miss backend.forst.metrics.bloom-filter-full-positive
        backend.forst.metrics.bloom-filter-full-true-positive backend.forst.metrics.bloom-filter-useful
        backend.forst.metrics.bytes-read backend.forst.metrics.bytes-written
        backend.forst.metrics.column-family-as-variable backend.forst.metrics.compaction-read-bytes
        backend.forst.metrics.compaction-write-bytes backend.forst.metrics.iter-bytes-read
        backend.forst.metrics.num-files-at-level backend.forst.metrics.stall-micros backend.forst.options-factory
        backend.forst.primary-dir backend.forst.rescaling.use-delete-files-in-range
        backend.forst.restore-overlap-fraction-threshold backend.forst.sync.enforce-local backend.forst.thread.num
        backend.forst.timer-service.cache-size backend.forst.timer-service.factory backend.forst.use-bloom-filter
        backend.forst.use-ingest-db-restore-mode backend.forst.write-batch-size backend.forst.writebuffer.count
        backend.forst.writebuffer.number-to-merge backend.forst.writebuffer.size backend.fs.checkpointdir
        backend.fs.memory-threshold backend.fs.write-buffer-size backend.incremental backend.latency-track.history-size
        backend.latency-track.keyed-state-enabled backend.latency-track.sample-interval
        backend.latency-track.state-name-as-variable backend.local-recovery backend.rocksdb.block.blocksize
        backend.rocksdb.block.cache-size backend.rocksdb.block.metadata-blocksize
        backend.rocksdb.bloom-filter.bits-per-key backend.rocksdb.bloom-filter.block-based-mode
        backend.rocksdb.checkpoint.transfer.thread.num backend.rocksdb.compaction.filter.periodic-compaction-time
        backend.rocksdb.compaction.filter.query-time-after-num-entries
        backend.rocksdb.compaction.level.max-size-level-base backend.rocksdb.compaction.level.target-file-size-base
        backend.rocksdb.compaction.level.use-dynamic-size backend.rocksdb.compaction.style
        backend.rocksdb.compression.per.level backend.rocksdb.files.open
        backend.rocksdb.incremental-restore-async-compact-after-rescale backend.rocksdb.localdir backend.rocksdb.log.dir
        backend.rocksdb.log.file-num backend.rocksdb.log.level backend.rocksdb.log.max-file-size
        backend.rocksdb.manual-compaction.max-auto-compactions
        backend.rocksdb.manual-compaction.max-file-size-to-compact
        backend.rocksdb.manual-compaction.max-files-to-compact backend.rocksdb.manual-compaction.max-output-file-size
        backend.rocksdb.manual-compaction.max-parallel-compactions
        backend.rocksdb.manual-compaction.min-files-to-compact backend.rocksdb.manual-compaction.min-interval
        backend.rocksdb.memory.fixed-per-slot backend.rocksdb.memory.fixed-per-tm
        backend.rocksdb.memory.high-prio-pool-ratio backend.rocksdb.memory.managed
        backend.rocksdb.memory.partitioned-index-filters backend.rocksdb.memory.write-buffer-ratio
        backend.rocksdb.metrics.actual-delayed-write-rate backend.rocksdb.metrics.background-errors
        backend.rocksdb.metrics.block-cache-capacity backend.rocksdb.metrics.block-cache-hit
        backend.rocksdb.metrics.block-cache-miss backend.rocksdb.metrics.block-cache-pinned-usage
        backend.rocksdb.metrics.block-cache-usage backend.rocksdb.metrics.bloom-filter-full-positive
        backend.rocksdb.metrics.bloom-filter-full-true-positive backend.rocksdb.metrics.bloom-filter-useful
        backend.rocksdb.metrics.bytes-read backend.rocksdb.metrics.bytes-written
        backend.rocksdb.metrics.column-family-as-variable backend.rocksdb.metrics.compaction-pending
        backend.rocksdb.metrics.compaction-read-bytes backend.rocksdb.metrics.compaction-write-bytes
        backend.rocksdb.metrics.cur-size-active-mem-table backend.rocksdb.metrics.cur-size-all-mem-tables
        backend.rocksdb.metrics.estimate-live-data-size backend.rocksdb.metrics.estimate-num-keys
        backend.rocksdb.metrics.estimate-pending-compaction-bytes backend.rocksdb.metrics.estimate-table-readers-mem
        backend.rocksdb.metrics.is-write-stopped backend.rocksdb.metrics.iter-bytes-read
        backend.rocksdb.metrics.live-sst-files-size backend.rocksdb.metrics.mem-table-flush-pending
        backend.rocksdb.metrics.num-deletes-active-mem-table backend.rocksdb.metrics.num-deletes-imm-mem-tables
        backend.rocksdb.metrics.num-entries-active-mem-table backend.rocksdb.metrics.num-entries-imm-mem-tables
        backend.rocksdb.metrics.num-files-at-level backend.rocksdb.metrics.num-immutable-mem-table
        backend.rocksdb.metrics.num-live-versions backend.rocksdb.metrics.num-running-compactions
        backend.rocksdb.metrics.num-running-flushes backend.rocksdb.metrics.num-snapshots
        backend.rocksdb.metrics.size-all-mem-tables backend.rocksdb.metrics.stall-micros
        backend.rocksdb.metrics.total-sst-files-size backend.rocksdb.options-factory backend.rocksdb.predefined-options
        backend.rocksdb.rescaling.use-delete-files-in-range backend.rocksdb.restore-overlap-fraction-threshold
        backend.rocksdb.thread.num backend.rocksdb.timer-service.cache-size backend.rocksdb.timer-service.factory
        backend.rocksdb.ttl.compaction.filter.enabled backend.rocksdb.use-bloom-filter
        backend.rocksdb.use-ingest-db-restore-mode backend.rocksdb.write-batch-size backend.rocksdb.writebuffer.count
        backend.rocksdb.writebuffer.number-to-merge backend.rocksdb.writebuffer.size backend.type
        changelog.dstl.dfs.base-path changelog.dstl.dfs.batch.persist-delay
        changelog.dstl.dfs.batch.persist-size-threshold changelog.dstl.dfs.compression.enabled
        changelog.dstl.dfs.discard.num-threads changelog.dstl.dfs.download.local-cache.idle-timeout-ms
        changelog.dstl.dfs.preemptive-persist-threshold changelog.dstl.dfs.upload.buffer-size
        changelog.dstl.dfs.upload.max-attempts changelog.dstl.dfs.upload.max-in-flight
        changelog.dstl.dfs.upload.next-attempt-delay changelog.dstl.dfs.upload.num-threads
        changelog.dstl.dfs.upload.retry-policy changelog.dstl.dfs.upload.timeout changelog.enabled
        changelog.max-failures-allowed changelog.periodic-materialize.enabled changelog.periodic-materialize.interval
        changelog.storage checkpoint-storage checkpoint.cleaner.parallel-mode checkpoints.create-subdir checkpoints.dir
        checkpoints.file-merging.across-checkpoint-boundary checkpoints.file-merging.enabled
        checkpoints.file-merging.max-file-size checkpoints.file-merging.max-space-amplification
        checkpoints.file-merging.max-subtasks-per-file checkpoints.file-merging.pool-blocking checkpoints.num-retained
        latency-track.history-size latency-track.keyed-state-enabled latency-track.sample-interval
        latency-track.state-name-as-variable savepoints.dir size-track.history-size size-track.keyed-state-enabled
        size-track.sample-interval size-track.state-name-as-variable storage.fs.memory-threshold
        storage.fs.write-buffer-size""",
    "table": """
        builtin-catalog-name builtin-database-name catalog-modification.listeners catalog-store.kind
        column-expansion-strategy display.max-column-width dml-sync dynamic-table-options.enabled
        exec.async-lookup.buffer-capacity exec.async-lookup.key-ordered-enabled exec.async-lookup.output-mode
        exec.async-lookup.timeout exec.async-ml-predict.max-concurrent-operations exec.async-ml-predict.output-mode
        exec.async-ml-predict.timeout exec.async-scalar.buffer-capacity exec.async-scalar.max-attempts
        exec.async-scalar.max-concurrent-operations exec.async-scalar.retry-delay exec.async-scalar.retry-strategy
        exec.async-scalar.timeout exec.async-state.enabled exec.async-table.max-concurrent-operations
        exec.async-table.max-retries exec.async-table.retry-delay exec.async-table.retry-strategy
        exec.async-table.timeout exec.async-vector-search.max-concurrent-operations exec.async-vector-search.output-mode
        exec.async-vector-search.timeout exec.deduplicate.insert-update-after-sensitive-enabled
        exec.deduplicate.mini-batch.compact-changes-enabled exec.delta-join.cache-enabled
        exec.delta-join.left.cache-size exec.delta-join.right.cache-size exec.disabled-operators
        exec.dynamic-filtering.threshold exec.emit.allow-lateness exec.emit.early-fire.delay
        exec.emit.early-fire.enabled exec.emit.late-fire.delay exec.emit.late-fire.enabled
        exec.interval-join.min-cleanup-interval exec.legacy-cast-behaviour exec.legacy-transformation-uids
        exec.local-hash-agg.adaptive.distinct-value-rate-threshold exec.local-hash-agg.adaptive.enabled
        exec.local-hash-agg.adaptive.sampling-threshold exec.mini-batch.allow-latency exec.mini-batch.enabled
        exec.mini-batch.size exec.operator-fusion-codegen.enabled exec.rank.topn-cache-size
        exec.resource.default-parallelism exec.resource.external-buffer-memory exec.resource.hash-agg.memory
        exec.resource.hash-join.memory exec.resource.sort.memory exec.shuffle-mode exec.simplify-operator-name-enabled
        exec.sink.keyed-shuffle exec.sink.nested-constraint-enforcer exec.sink.not-null-enforcer
        exec.sink.require-on-conflict exec.sink.rowtime-inserter exec.sink.type-length-enforcer
        exec.sink.upsert-materialize exec.sink.upsert-materialize-strategy.adaptive.threshold.high
        exec.sink.upsert-materialize-strategy.adaptive.threshold.low exec.sink.upsert-materialize-strategy.type
        exec.sort.async-merge-enabled exec.sort.default-limit exec.sort.max-num-file-handles
        exec.source.cdc-events-duplicate exec.source.idle-timeout exec.spill-compression.block-size
        exec.spill-compression.enabled exec.state.ttl exec.uid.format exec.uid.generation exec.unbounded-over.version
        exec.window-agg.buffer-size-limit generated-code.max-length generated-code.max-members
        legacy-nested-row-nullability local-time-zone optimizer.adaptive-broadcast-join.strategy
        optimizer.agg-phase-strategy optimizer.bushy-join-reorder-threshold optimizer.delta-join.strategy
        optimizer.distinct-agg.split.bucket-num optimizer.distinct-agg.split.enabled optimizer.dynamic-filtering.enabled
        optimizer.incremental-agg-enabled optimizer.join-reorder-enabled optimizer.join.broadcast-threshold
        optimizer.multi-join.enabled optimizer.multiple-input-enabled optimizer.non-deterministic-update.strategy
        optimizer.ptf.max-tables optimizer.reuse-optimize-block-with-digest-enabled optimizer.reuse-sink-enabled
        optimizer.reuse-source-enabled optimizer.reuse-sub-plan-enabled optimizer.runtime-filter.enabled
        optimizer.runtime-filter.max-build-data-size optimizer.runtime-filter.min-filter-ratio
        optimizer.runtime-filter.min-probe-data-size optimizer.skewed-join-optimization.skewed-factor
        optimizer.skewed-join-optimization.skewed-threshold optimizer.skewed-join-optimization.strategy
        optimizer.source.predicate-pushdown-enabled optimizer.source.report-statistics-enabled
        optimizer.sql2rel.project-merge.enabled optimizer.union-all-as-breakpoint-enabled plan.compile.catalog-objects
        plan.force-recompile plan.restore.catalog-objects resources.download-dir rtas-ctas.atomicity-enabled
        secret-store.kind sql-dialect""",
    "task": "cancellation-interval cancellation.interval cancellation.timeout cancellation.timers.timeout",
    "taskmanager": """
        bind-host collect-sink.port cpu.cores data.bind-port data.port data.ssl.enabled debug.memory.log
        debug.memory.log-interval debug.memory.logIntervalMs debug.memory.startLogThread exit-on-fatal-akka-error
        heap.mb heap.size host initial-registration-pause jvm-exit-on-oom load-balance.mode log.path
        max-registration-pause maxRegistrationDuration memory.flink.size memory.fraction memory.framework.heap.size
        memory.framework.off-heap.batch-shuffle.size memory.framework.off-heap.size memory.jvm-metaspace.size
        memory.jvm-overhead.fraction memory.jvm-overhead.max memory.jvm-overhead.min memory.managed.consumer-weights
        memory.managed.fraction memory.managed.size memory.min-segment-size memory.network.fraction memory.network.max
        memory.network.min memory.off-heap memory.preallocate memory.process.size memory.segment-size memory.size
        memory.starting-segment-size memory.task.heap.size memory.task.off-heap.size net.client.connectTimeoutSec
        net.client.numThreads net.num-arenas net.request-backoff.initial net.request-backoff.max
        net.sendReceiveBufferSize net.server.backlog net.server.numThreads net.transport
        network.adaptive-partitioner.enabled network.adaptive-partitioner.max-traverse-size
        network.batch-shuffle.compression.enabled network.bind-policy network.blocking-shuffle.compression.enabled
        network.blocking-shuffle.type network.bounded-blocking-subpartition-type network.compression.codec
        network.credit-model network.detailed-metrics network.hybrid-shuffle.enable-new-mode
        network.hybrid-shuffle.external-remote-tier-factory.class
        network.hybrid-shuffle.num-retained-in-memory-regions-max network.hybrid-shuffle.remote.path
        network.hybrid-shuffle.spill-index-region-group-size network.hybrid-shuffle.spill-index-segment-size
        network.max-num-tcp-connections network.memory.buffer-debloat.enabled network.memory.buffer-debloat.period
        network.memory.buffer-debloat.samples network.memory.buffer-debloat.target
        network.memory.buffer-debloat.threshold-percentages network.memory.buffers-per-channel
        network.memory.buffers-request-timeout network.memory.exclusive-buffers-request-timeout-ms
        network.memory.floating-buffers-per-gate network.memory.fraction network.memory.max
        network.memory.max-buffers-per-channel network.memory.max-overdraft-buffers-per-gate network.memory.min
        network.memory.read-buffer.required-per-gate.max network.netty.client.connectTimeoutSec
        network.netty.client.numThreads network.netty.client.tcp.keepCount network.netty.client.tcp.keepIdleSec
        network.netty.client.tcp.keepIntervalSec network.netty.num-arenas network.netty.sendReceiveBufferSize
        network.netty.server.backlog network.netty.server.numThreads network.netty.transport network.numberOfBuffers
        network.partition-request-timeout network.request-backoff.initial network.request-backoff.max network.retries
        network.sort-shuffle.min-buffers network.sort-shuffle.min-parallelism
        network.tcp-connection.enable-reuse-across-jobs numberOfTaskSlots refused-registration-pause
        registration.initial-backoff registration.max-backoff registration.refused-backoff registration.timeout
        resource-id rpc.bind-port rpc.port runtime.fs-timeout runtime.fs_timeout runtime.hashjoin-bloom-filters
        runtime.large-record-handler runtime.max-fan runtime.sort-spilling-threshold slot.timeout state.local.root-dirs
        system-out.log.cache-upper-size system-out.log.thread-name.enabled system-out.mode tmp.dirs""",
    "timerservice": "exceptional.shutdown.timeout",
    "traces": "checkpoint.span-detail-level reporters",
    "user": "artifacts.artifact-list artifacts.base-dir artifacts.http-headers artifacts.raw-http-enabled",
    "web": """
        access-control-allow-origin adaptive-scheduler.rescale-history.size address backpressure.cleanup-interval
        backpressure.delay-between-samples backpressure.num-samples backpressure.refresh-interval cancel.enable
        checkpoints.history exception-history-size history log.path port refresh-interval rescale.enable ssl.enabled
        submit.enable timeout tmpdir upload.dir""",
    "workflow-scheduler": "type",
    "yarn": """
        application-attempt-failures-validity-interval application-attempts application-master.port application.id
        application.name application.node-label application.priority application.queue application.type appmaster.vcores
        classpath.include-user-jar container-start-command-template containers.vcores file-replication flink-dist-jar
        heap-cutoff-min heap-cutoff-ratio heartbeat-delay heartbeat.container-request-interval heartbeat.interval
        maximum-failed-containers modify.acls per-job-cluster.include-user-jar properties-file.location
        provided.lib.dirs provided.usrlib.dir reallocate-failed resourcemanager.am.max-attempts
        rolled-logs.exclude-pattern rolled-logs.include-pattern security.appmaster.delegation.token.services
        security.kerberos.additionalFileSystems security.kerberos.localized-keytab-path
        security.kerberos.ship-local-keytab ship-archives ship-directories ship-files staging-directory tags
        taskmanager.node-label view.acls""",
    "zookeeper": "sasl.disable sasl.login-context-name sasl.service-name",
}

FLINK_KEYS: frozenset[str] = frozenset(_WITHOUT_DOT) | {  # the keys without parts that users choose
    f"{first}.{rest}" for first, words in _BY_FIRST_WORD.items() for rest in words.split()
}
_PATTERNS = """
    metrics.reporter.*.** metrics.scope.** traces.reporter.*.** events.reporter.*.** external-resource.*.**
    security.delegation.token.provider.*.** security.ssl.** containerized.master.env.** containerized.taskmanager.env.**
    flink.hadoop.** flink.yarn.** fs.*.limit.** fs.s3a.** fs.azure.** fs.gs.** fs.oss.** s3.** s3a.** gs.**
    kubernetes.*.annotations.** kubernetes.*.labels.** kubernetes.*.node-selector.** kubernetes.*.tolerations.**
    pipeline.global-job-parameters.** pipeline.jobvertex-parallelism-overrides.** python.job-options.**
    python.logging.level.overrides.** sql-gateway.endpoint.** table.catalog-store.** table.secret-store.**
    taskmanager.memory.managed.consumer-weights.** workflow-scheduler.** $internal.** internal.**"""
#: Keys with parts that users choose: `*` stands for one word, a final `**` for the rest.
FLINK_KEY_PATTERNS: tuple[str, ...] = tuple(_PATTERNS.split())
_PATTERN = re.compile(
    "|".join(re.escape(key).replace(r"\*\*", ".+").replace(r"\*", r"[^.]+") for key in FLINK_KEY_PATTERNS)
)


def is_flink_key(key: str) -> bool:
    """Whether Flink knows this key.

    >>> is_flink_key("metrics.reporter.prom.port"), is_flink_key("metrics.reportr.prom.port")
    (True, False)
    """
    return key in FLINK_KEYS or _PATTERN.fullmatch(key) is not None


def closest_keys(key: str, own: frozenset[str] = frozenset()) -> list[str]:
    """The known keys that look most like this one, best first.

    >>> closest_keys("paralelism.default")
    ['parallelism.default']
    """
    return difflib.get_close_matches(key, sorted(FLINK_KEYS | own), n=3, cutoff=0.75)


def closest_first_word(key: str) -> str | None:
    """The first word of Flink's keys that the first word of this key is, or looks like; None: it is like none.

    >>> closest_first_word("executon.mode"), closest_first_word("acme.mode")
    ('execution', None)
    """
    found = difflib.get_close_matches(key.partition(".")[0], _FIRST_WORDS, n=1, cutoff=0.8)
    return found[0] if found else None


_FIRST_WORDS = sorted({key.partition(".")[0] for key in FLINK_KEYS})
