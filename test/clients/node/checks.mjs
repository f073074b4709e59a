// Named checks, each with a verdict of its own; the last line tells how many have passed.
import assert from 'node:assert/strict';

export { assert };

let passed = 0;
const failed = [];

export async function check(name, run) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error('it takes longer than 30 s')), 30_000);
  });
  try {
    await Promise.race([run(), late]);
    passed += 1;
    console.log(`ok ${name}`);
  } catch (error) {
    failed.push(name);
    console.log(`FAILED ${name}: ${error.code ?? ''} ${error.stack ?? error}`);
  } finally {
    clearTimeout(timer);
  }
}

// The promise must be refused with this SQLSTATE.
export async function refused(code, promise) {
  const error = await promise.then(
    () => assert.fail(`no error ${code}`),
    (error) => error,
  );
  assert.equal(error.code ?? error.driverError?.code, code, String(error.stack ?? error));
  return error;
}

export function finish() {
  if (failed.length > 0) {
    console.log(`failed: ${failed.join(', ')}`);
    process.exit(1);
  }
  console.log(`passed: ${passed}`);
  process.exit(0);
}
