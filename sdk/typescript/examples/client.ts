/** A producer: makes a job, follows its progress, prints its outcome. Run it, compiled or with a Node that reads TypeScript (22.18), with the number to count to: `node client.ts 100`. */
import { BrokerClient } from '@reelhost/sdk';

const client = await BrokerClient.connect();
const job = await client.enqueue({ task: 'demo.count.v1', args: { to: Number(process.argv[2] ?? 20) } });
for await (const { stage, percent } of job.progress()) console.log(`${stage} ${Math.round(percent ?? 0)} %`);
const outcome = await job.outcome;
if (outcome.state === 'completed') console.log('result', outcome.result);
else console.log(outcome.state, outcome.error.type, outcome.error.message);
await client.close();
