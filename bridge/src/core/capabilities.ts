/**
 * What this host can do, told from the executors that are connected to the broker right now, and whether an offered job fits it.
 * Nothing is taken from configuration: a job type of the specification is advertised exactly while a live executor serves it (Capabilities).
 */
import {
  CONTAINER_MODES,
  compareVersions,
  isKnownJobType,
  type JobType,
  type RejectReason,
} from '@reelhost/bridge-protocol';

type ContainerMode = (typeof CONTAINER_MODES)[number];

/** hello.capabilities without the parts that never change (section Capabilities). */
export type Capabilities = {
  readonly jobTypes: readonly JobType[];
  readonly container: 'none' | 'docker' | 'podman';
  readonly containerMode?: ContainerMode;
  readonly runtimeImageDigest: string | null;
  readonly ffmpegVersion: string;
  readonly fontsetVersion: string;
  readonly maxOutputBytes: number;
};

/** A runner without executors. */
export const NO_CAPABILITIES: Capabilities = {
  jobTypes: [],
  container: 'none',
  runtimeImageDigest: null,
  ffmpegVersion: 'none',
  fontsetVersion: '0',
  maxOutputBytes: 0,
};

/** The part of a registered runtime that matters here: task key to attributes. */
export type RegisteredRuntime = {
  readonly tasks: Readonly<Record<string, { readonly attributes?: Readonly<Record<string, unknown>> }>>;
};

/** Longest version or digest that is told, in characters: an executor's overlong text must not keep the whole runner from saying hello. */
const TEXT_LENGTH = 256;
const TASK = /^reelbolt\.(.+)\.v1$/;
const REMOTION = 'remotion.workspace-session';

/** The local task key that serves a job type. */
export function taskOf(jobType: string): string {
  return `reelbolt.${jobType}.v1`;
}

/**
 * Capabilities from the registry. Where several executors serve one job type and differ, the lowest version and the smallest limit are told, because any of
 * them may get the job. A workspace session is told only with a container runtime (Capabilities, first rule).
 */
export function capabilitiesOf(runtimes: readonly RegisteredRuntime[]): Capabilities {
  const served = runtimes.flatMap((runtime) =>
    Object.entries(runtime.tasks).flatMap(([key, task]) => {
      const jobType = TASK.exec(key)?.[1];
      return jobType === undefined || !isKnownJobType(jobType) ? [] : [{ jobType, attributes: task.attributes ?? {} }];
    }),
  );
  const workspace = served.find(
    (task) =>
      task.jobType === REMOTION &&
      (task.attributes['container'] === 'docker' || task.attributes['container'] === 'podman'),
  );
  const offered = served.filter((task) => task.jobType !== REMOTION || task === workspace);
  const media = offered.filter((task) => task.jobType !== REMOTION);
  const text = (value: unknown): string | undefined =>
    typeof value === 'string' && value !== '' ? value.slice(0, TEXT_LENGTH) : undefined;
  const lowest = (name: string): string | undefined =>
    (media.length > 0 ? media : offered)
      .map((task) => text(task.attributes[name]))
      .filter((value) => value !== undefined)
      .sort(compareVersions)[0];
  const caps = offered
    .map((task) => task.attributes['maxOutputBytes'])
    .filter((value): value is number => typeof value === 'number' && Number.isSafeInteger(value) && value >= 0);
  const mode = CONTAINER_MODES.find((known) => known === workspace?.attributes['containerMode']);
  return {
    jobTypes: [...new Set(offered.map((task) => task.jobType))].sort(),
    container: workspace === undefined ? 'none' : workspace.attributes['container'] === 'docker' ? 'docker' : 'podman',
    ...(mode === undefined ? {} : { containerMode: mode }),
    runtimeImageDigest: text(workspace?.attributes['runtimeImageDigest']) ?? null,
    ffmpegVersion: lowest('ffmpegVersion') ?? NO_CAPABILITIES.ffmpegVersion,
    fontsetVersion: lowest('fontsetVersion') ?? NO_CAPABILITIES.fontsetVersion,
    maxOutputBytes: caps.length === 0 ? 0 : Math.min(...caps),
  };
}

/** True when both would be told the same. */
export function sameCapabilities(a: Capabilities, b: Capabilities): boolean {
  return (
    a.jobTypes.join('\n') === b.jobTypes.join('\n') &&
    a.container === b.container &&
    a.containerMode === b.containerMode &&
    a.runtimeImageDigest === b.runtimeImageDigest &&
    a.ffmpegVersion === b.ffmpegVersion &&
    a.fontsetVersion === b.fontsetVersion &&
    a.maxOutputBytes === b.maxOutputBytes
  );
}

/** What an assign asks of the runner (assign.requires, assign.limits). Null pins nothing. */
export type Requirements = {
  readonly jobType: string;
  readonly runtimeImageDigest: string | null;
  readonly fontsetVersion: string | null;
  readonly maxOutputBytes: number;
};

/** Why a job does not fit, or null when it does. The gateway has matched already; a runner checks again (Routing and targets). */
export function misfitOf(
  capabilities: Capabilities,
  wanted: Requirements,
): { readonly reason: RejectReason; readonly message: string } | null {
  if (!capabilities.jobTypes.some((jobType) => jobType === wanted.jobType)) {
    return wanted.jobType === REMOTION && capabilities.container === 'none'
      ? { reason: 'no_container_runtime', message: 'no container runtime serves workspace sessions here' }
      : { reason: 'capability_mismatch', message: `no executor here serves ${wanted.jobType.slice(0, 80)}` };
  }
  if (wanted.runtimeImageDigest !== null && wanted.runtimeImageDigest !== capabilities.runtimeImageDigest) {
    return { reason: 'capability_mismatch', message: 'the runtime image here has another digest' };
  }
  if (wanted.fontsetVersion !== null && compareVersions(capabilities.fontsetVersion, wanted.fontsetVersion) < 0) {
    return { reason: 'capability_mismatch', message: `the font set here is ${capabilities.fontsetVersion}` };
  }
  if (wanted.maxOutputBytes > capabilities.maxOutputBytes) {
    return { reason: 'capability_mismatch', message: `objects here have at most ${capabilities.maxOutputBytes} bytes` };
  }
  return null;
}
