/** Listeners on this computer that a closed network must not reach. They only note that somebody came, by which way; they answer nothing. */
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';

/** Open listeners; the ports are free ones of 127.0.0.1. */
export interface LoopbackTrap {
  tcp: number;
  udp: number;
  /** The ways by which anything came since the trap was opened. Waits until what had been sent before the call has been seen. */
  reached(): Promise<('tcp' | 'udp')[]>;
  close(): Promise<void>;
}

/** Opens both listeners. @throws the system's error when this computer has no loopback address. */
export async function openLoopbackTrap(): Promise<LoopbackTrap> {
  const ways = new Set<'tcp' | 'udp'>();
  const visitors = new Set<Socket>();
  const server = createServer((socket) => {
    ways.add('tcp');
    visitors.add(socket);
    socket.on('error', () => undefined);
    socket.resume();
  });
  const datagrams = createSocket('udp4');
  let marks = 0;
  datagrams.on('message', (message) => {
    if (message.toString('latin1').startsWith(MARK)) datagrams.emit(message.toString('latin1'));
    else ways.add('udp');
  });
  server.listen(0, '127.0.0.1');
  datagrams.bind(0, '127.0.0.1');
  await Promise.all([once(server, 'listening'), once(datagrams, 'listening')]);
  const tcp = (server.address() as AddressInfo).port;
  const udp = datagrams.address().port;
  return {
    tcp,
    udp,
    async reached() {
      // A datagram of our own arrives behind those sent before it; connections that were made are accepted in the same turn of the loop.
      marks += 1;
      const seen = once(datagrams, `${MARK}${marks}`);
      datagrams.send(`${MARK}${marks}`, udp, '127.0.0.1');
      await seen;
      await new Promise((resolve) => setImmediate(resolve));
      return [...ways].sort();
    },
    async close() {
      for (const socket of visitors) socket.destroy();
      await Promise.all([
        new Promise((resolve) => server.close(resolve)),
        new Promise<void>((resolve) => datagrams.close(resolve)),
      ]);
    },
  };
}

const MARK = 'reelhost-mark-';
