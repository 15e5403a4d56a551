/**
 * The executor process: finds ffmpeg, learns what it can do, and serves media sessions for the broker of this host until SIGTERM.
 *
 * Order of events: options → leftovers of a dead predecessor ended → guardian started → programs found → sandbox chosen → capabilities asked →
 * registered. A program that vanishes at run time withdraws the tasks; they come back when it does. Nothing runs on import.
 */
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createLog, exitOnCrash, type Logger } from '@reelhost/log';
import { createExecutor, type Executor, type TaskDefinition } from '@reelhost/sdk';
import { type FontSet, openFontSet } from './fonts.js';
import { IDEMPOTENT_OPS, runMediaOp } from './media-task.js';
import type { Services } from './ops/op-run.js';
import { type ExecutorOptions, parseOptions, USAGE, UsageError } from './options.js';
import { type Capabilities, probeCapabilities } from './probe/capabilities.js';
import { findPrograms, type Programs, ProgramsMissing } from './probe/programs.js';
import { childEnvironment } from './process/child-environment.js';
import { createGuardian } from './process/guardian.js';
import { ownerMarker, startTime, sweepOrphans } from './process/marker.js';
import type { Sandbox } from './sandbox/sandbox.js';
import { SandboxMissing, selectSandbox } from './sandbox/select.js';
import { createTransport } from './transfer/transport.js';

/** The tasks of this executor: one per job type of the remote protocol. */
export const TASKS = ['reelbolt.video.compile.v1', 'reelbolt.video.analyze.extract.v1'] as const;

const EXIT = { done: 0, unexpected: 1, usage: 2, config: 78 } as const;
const SCRATCH_PREFIX = 'reelhost-ffmpeg-';
/** How long a running op may go on after SIGTERM before it is stopped. */
const STOP_GRACE_MS = 10_000;
/** How often a vanished program is looked for. */
const LOOK_AGAIN_MS = 3_000;

/**
 * Runs the executor. `argv` is without node and script; the exit code is returned (see `--help` for options).
 * 0 stopped by a signal, 1 unexpected, 2 usage, 78 no usable ffmpeg, or no sandbox where one is required.
 */
export async function run(argv: string[]): Promise<number> {
  let options: ExecutorOptions | 'help';
  try {
    options = parseOptions(argv);
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    process.stderr.write(`${error.message}\n\n${USAGE}`);
    return EXIT.usage;
  }
  if (options === 'help') {
    process.stdout.write(USAGE);
    return EXIT.done;
  }
  const log = createLog('ffmpeg', options.logLevel);
  const endCrashWatch = exitOnCrash('ffmpeg');
  await sweepScratch();
  const scratch = await mkdtemp(join(tmpdir(), `${SCRATCH_PREFIX}${process.pid}-${startTime(process.pid) ?? 0}-`));
  try {
    return await serve(options, log, scratch);
  } catch (error) {
    if (error instanceof ProgramsMissing || error instanceof SandboxMissing) {
      log.error({ event: 'executor.unusable', code: error.name, reason: error.message });
      return EXIT.config;
    }
    log.fatal({
      event: 'executor.failed',
      reason: (error as Error).message,
      error: String((error as Error).stack ?? error),
    });
    return EXIT.unexpected;
  } finally {
    await rm(scratch, { recursive: true, force: true });
    endCrashWatch();
  }
}

/** Removes the private folders of executors that were killed and no longer live. */
async function sweepScratch(): Promise<void> {
  for (const name of await readdir(tmpdir()).catch(() => [])) {
    const [pid, started] = name.startsWith(SCRATCH_PREFIX) ? name.slice(SCRATCH_PREFIX.length).split('-') : [];
    if (
      pid === undefined ||
      started === undefined ||
      startTime(Number(pid)) === started ||
      process.platform !== 'linux'
    )
      continue;
    await rm(join(tmpdir(), name), { recursive: true, force: true }).catch(() => undefined);
  }
}

async function serve(options: ExecutorOptions, log: Logger, scratch: string): Promise<number> {
  const owner = ownerMarker();
  let children = 0;
  const nextMarker = (): string => {
    children += 1;
    return `${owner}${children}`;
  };
  const swept = sweepOrphans();
  if (swept > 0) log.warn({ event: 'orphans.ended', count: swept }, 'ended processes a dead executor had left behind');
  const guardian = createGuardian(owner);
  const transport = createTransport(options.caFile === undefined ? {} : { caFile: options.caFile });
  try {
    const search = { ffmpeg: options.ffmpeg, ffprobe: options.ffprobe, variables: process.env, nextMarker };
    const [programs] = await Promise.all([findPrograms(search), guardian.start()]);
    for (const warning of programs.warnings) log.warn({ event: 'ffmpeg.old', reason: warning });
    const fonts = await openFontSet(scratch);
    const environment = childEnvironment({
      home: fonts.home,
      temporary: fonts.home,
      fontconfigFile: fonts.fontconfigFile,
    });
    const sandbox = await selectSandbox(options.sandbox, {
      ffmpeg: programs.ffmpeg,
      readable: { paths: [fonts.folder, fonts.fontconfigFile] },
      environment,
      scratch,
      nextMarker,
      note: (mechanism, reason) => log.warn({ event: 'sandbox.not_usable', mechanism, reason }),
    });
    if (sandbox.name === 'none')
      log.warn({ event: 'sandbox.none', reason: 'no sandbox: only the argv validator protects this computer' });
    else if (sandbox.network === 'open')
      log.warn({ event: 'sandbox.network_open', reason: `${sandbox.name} closes the files, but not the network` });
    const capabilities = await probeCapabilities({
      ffmpeg: programs.ffmpeg,
      sandbox,
      environment,
      folder: fonts.home,
      nextMarker,
    });

    const look: { lost: boolean } = { lost: false };
    const services: Services = {
      programs,
      sandbox,
      transport,
      guardian,
      nextMarker,
      environment,
      maxOutputBytes: options.maxOutputBytes,
      sessionQuotaBytes: options.sessionQuotaBytes,
      programLost(program, message) {
        if (look.lost) return;
        look.lost = true;
        log.error({ event: 'ffmpeg.lost', program, reason: `${program} cannot be started any more: ${message}` });
        for (const task of TASKS) executor.removeTask(task);
      },
    };
    const define = (): TaskDefinition =>
      taskDefinition(services, attributes(programs, sandbox, fonts, capabilities, options), log);
    const executor: Executor = createExecutor({
      socketPath: options.socketPath,
      runtimeId: options.runtimeId,
      maxConcurrency: options.concurrency,
      software: 'reelhost-executor-ffmpeg/0.1.0',
      onEvent: (event, fields) => log.debug({ event, ...fields }),
      tasks: Object.fromEntries(TASKS.map((task) => [task, define()])),
    });
    const again = setInterval(() => {
      if (!look.lost) return;
      findPrograms(search).then(
        (found) => {
          services.programs = found;
          look.lost = false;
          log.info({ event: 'ffmpeg.back', ffmpegVersion: found.version });
          for (const task of TASKS) executor.setTask(task, define());
        },
        () => undefined,
      );
    }, LOOK_AGAIN_MS);
    try {
      return await untilSignal(executor, log, () => {
        log.info({
          event: 'executor.ready',
          ffmpegVersion: programs.version,
          sandbox: sandbox.name,
          sandboxNetwork: sandbox.network,
          fontsetVersion: fonts.version,
          concurrency: options.concurrency,
        });
      });
    } finally {
      clearInterval(again);
    }
  } finally {
    transport.close();
    await guardian.stop();
  }
}

function attributes(
  programs: Programs,
  sandbox: Sandbox,
  fonts: FontSet,
  capabilities: Capabilities,
  options: ExecutorOptions,
) {
  return {
    ffmpegVersion: programs.version,
    fontsetVersion: fonts.version,
    maxOutputBytes: options.maxOutputBytes,
    container: 'none',
    sandbox: sandbox.name,
    sandboxNetwork: sandbox.network,
    encoders: capabilities.encoders,
    filters: capabilities.filters,
    hardwareEncoders: capabilities.hardwareEncoders,
  };
}

function taskDefinition(services: Services, facts: ReturnType<typeof attributes>, log: Logger): TaskDefinition {
  return {
    attributes: facts,
    sessions: 'host',
    idempotentOps: IDEMPOTENT_OPS,
    async handler(args, context) {
      const startedAt = performance.now();
      const fields = {
        op: String(args['op']).slice(0, 32),
        jobId: context.jobId,
        sessionId: context.sessionId,
        task: context.task,
      };
      log.debug({ event: 'op.started', ...fields });
      const settled = (code: string): void => {
        log.info({ event: 'op.settled', ...fields, code, ms: Math.round(performance.now() - startedAt) });
      };
      try {
        const result = await runMediaOp(args, context, services);
        settled('ok');
        return result as Record<string, string | number | boolean>;
      } catch (error) {
        settled((error as { code?: string }).code ?? 'internal_error');
        throw error;
      }
    },
  };
}

/** Resolves when a signal, or the broker's final refusal, has ended the executor. */
async function untilSignal(executor: Executor, log: Logger, onReady: () => void): Promise<number> {
  let stopping: Promise<void> | undefined;
  const stop = (signal: NodeJS.Signals): void => {
    if (stopping) {
      log.warn({ event: 'executor.forced', signal }, 'second signal: stopping now');
      void executor.stop({ graceMs: 0 });
      return;
    }
    log.info({ event: 'executor.stopping', signal });
    stopping = executor.stop({ graceMs: STOP_GRACE_MS });
  };
  process.on('SIGTERM', stop);
  process.on('SIGINT', stop);
  try {
    const started = executor.start();
    started.catch(() => undefined);
    void started.then(onReady, () => undefined);
    await executor.finished;
    await stopping;
    return EXIT.done;
  } finally {
    process.off('SIGTERM', stop);
    process.off('SIGINT', stop);
  }
}
