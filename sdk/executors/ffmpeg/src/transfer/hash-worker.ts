/** The thread of content-hash.ts: takes orders in sequence, answers each `update` and `digest`, keeps one hash per stream. */
import { createHash, type Hash } from 'node:crypto';
import { MessageChannel, parentPort } from 'node:worker_threads';
import type { HashAnswer, HashOrder } from './content-hash.js';

const hashes = new Map<string, Hash>();
/** What is given to a closed port is gone at once; the collector would let 64 MiB of hashed memory gather first. */
const { port1: away } = new MessageChannel();
away.close();

parentPort?.on('message', (order: HashOrder) => {
  switch (order.kind) {
    case 'update': {
      let hash = hashes.get(order.stream);
      if (!hash) {
        hash = createHash('sha256');
        hashes.set(order.stream, hash);
      }
      for (const piece of order.pieces) hash.update(piece);
      away.postMessage(undefined, order.pieces.map(({ buffer }) => buffer).filter(isOwn));
      answer({ kind: 'hashed', stream: order.stream });
      return;
    }
    case 'digest': {
      const hash = hashes.get(order.stream) ?? createHash('sha256');
      hashes.delete(order.stream);
      answer({ kind: 'digest', stream: order.stream, hex: hash.digest('hex') });
      return;
    }
    case 'abandon':
      hashes.delete(order.stream);
      return;
  }
});

function isOwn(memory: ArrayBufferLike): memory is ArrayBuffer {
  return memory instanceof ArrayBuffer;
}

function answer(message: HashAnswer): void {
  parentPort?.postMessage(message);
}
