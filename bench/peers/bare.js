import { createServer } from 'node:http';
import { fixed, port } from './fixed.js';

const answers = new Map(fixed.map(answer => [`${answer.method} ${answer.path}`, answer]));
/** The answer to all other paths, if there is one. */
const any = fixed.find(({ path }) => path === '*');
createServer({ keepAliveTimeout: 65_000 }, (request, response) => {
  const { status, headers, body } = answers.get(`${request.method} ${request.url}`) ?? any;
  response.writeHead(status, headers);
  response.end(body);
}).listen(port, '127.0.0.1', 1024);
