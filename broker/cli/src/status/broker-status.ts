/** Asks the broker over its socket what it is doing. Waits a second at most: a broker that does not answer is an answer too. */
import { existsSync } from 'node:fs';
import { BrokerClient, BrokerError, type JsonValue } from '@reelhost/sdk';

/** A connected executor. */
export interface ExecutorStatus {
  readonly runtimeId: string;
  readonly software: string | null;
  readonly pid: number | null;
  readonly inFlight: number;
  readonly maxConcurrency: number;
  /** Task key to the attributes it declared (versions, digests). */
  readonly tasks: Readonly<Record<string, unknown>>;
}

/** What the broker said; `stats` is its own object, see docs/local-protocol.md. */
export interface BrokerStatus {
  readonly answers: boolean;
  /** Why it does not answer. */
  readonly reason: string | null;
  /** A socket file is there. */
  readonly socketExists: boolean;
  readonly stats: Readonly<Record<string, JsonValue>> | null;
  readonly executors: readonly ExecutorStatus[];
}

const ANSWER_WITHIN_MS = 1_000;

/** Connects, asks, disconnects. Never throws. */
export async function readBrokerStatus(socket: string): Promise<BrokerStatus> {
  const socketExists = existsSync(socket);
  const silent = (reason: string): BrokerStatus => ({
    answers: false,
    reason,
    socketExists,
    stats: null,
    executors: [],
  });
  if (!socketExists) return silent(`nothing listens on ${socket}`);
  let client: BrokerClient | undefined;
  try {
    client = await BrokerClient.connect({
      socketPath: socket,
      runtimeId: `reelhost-status-${process.pid}`,
      software: 'reelhost status',
      connectTimeoutMs: ANSWER_WITHIN_MS,
      requestTimeoutMs: ANSWER_WITHIN_MS,
    });
    const [stats, runtimes] = await Promise.all([client.inspect('stats'), client.inspect('runtimes')]);
    return {
      answers: true,
      reason: null,
      socketExists,
      stats: isFields(stats.data) ? stats.data : {},
      executors: readExecutors(runtimes.data),
    };
  } catch (error) {
    const code = error instanceof BrokerError ? error.code : 'error';
    if (code === 'not_running') return silent(`nothing listens on ${socket}`);
    return silent(
      code === 'connect_timeout' || code === 'request_timeout' ? 'it does not answer' : (error as Error).message,
    );
  } finally {
    await client?.close();
  }
}

/** Executors among the connected runtimes, tolerantly: a newer broker may say more. */
function readExecutors(data: JsonValue): ExecutorStatus[] {
  const runtimes = Array.isArray(data)
    ? data
    : isFields(data) && Array.isArray(data['runtimes'])
      ? data['runtimes']
      : [];
  return runtimes
    .filter(isFields)
    .filter((runtime) => isFields(runtime['tasks']) && Object.keys(runtime['tasks']).length > 0)
    .map((runtime) => ({
      runtimeId: String(runtime['runtime_id'] ?? ''),
      software: typeof runtime['software'] === 'string' ? runtime['software'] : null,
      pid: typeof runtime['pid'] === 'number' ? runtime['pid'] : null,
      inFlight: Number(runtime['in_flight'] ?? 0),
      maxConcurrency: Number(runtime['max_concurrency'] ?? 0),
      tasks: runtime['tasks'] as Readonly<Record<string, unknown>>,
    }));
}

function isFields(value: unknown): value is Readonly<Record<string, JsonValue>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
