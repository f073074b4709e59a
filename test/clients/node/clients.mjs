// node-postgres and TypeORM: node clients.mjs URL PART, where PART is driver or mapper.
import { checks as driver } from './driver.mjs';
import { checks as mapper } from './orm.mjs';
import { finish } from './checks.mjs';

const [, , url, part] = process.argv;
await (part === 'driver' ? driver : mapper)(url);
finish();
