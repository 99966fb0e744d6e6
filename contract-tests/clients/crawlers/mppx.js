import { validate } from 'mppx/discovery';

const document = await (await fetch(`${process.env.COINSLOT_URL}/openapi.json`)).json();
const complaints = validate(document);
for (const { severity, path, message } of complaints)
  process.stderr.write(`${severity} ${path}: ${message}\n`);
if (complaints.length > 0) throw new Error(`${complaints.length} complaints`);
if (validate({ ...document, openapi: 7 }).length === 0) throw new Error('the validator passes anything');
