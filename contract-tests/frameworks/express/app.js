/* A typical Express API; swagger-jsdoc makes its document from these comments. The API knows nothing about payments. */
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import express from 'express';
import swaggerJsdoc from 'swagger-jsdoc';

const app = express();
app.use(express.json(), express.urlencoded());
const notes = new Map([
  [1, { id: 1, text: 'Fog', tags: ['weather'] }],
  [2, { id: 2, text: 'Rain', tags: [] }],
]);
const document = swaggerJsdoc({
  definition: { openapi: '3.0.3', info: { title: 'Notes', version: '1.0.0' } },
  apis: [fileURLToPath(import.meta.url)],
});
app.get('/openapi.json', (_request, response) => response.json(document));

/**
 * @openapi
 * components:
 *   schemas:
 *     NewNote:
 *       type: object
 *       required: [text]
 *       properties:
 *         text: { type: string, minLength: 1, example: Fog }
 *         tags: { type: array, items: { type: string } }
 *         parent: { nullable: true, allOf: [{ $ref: '#/components/schemas/NewNote' }] }
 *     Note:
 *       allOf:
 *         - $ref: '#/components/schemas/NewNote'
 *         - { type: object, required: [id], properties: { id: { type: integer } } }
 *   parameters:
 *     id: { name: id, in: path, required: true, schema: { type: integer, minimum: 1 }, example: 1 }
 */

/**
 * @openapi
 * /notes:
 *   get:
 *     summary: List the notes
 *     parameters:
 *       - { name: tag, in: query, schema: { type: array, items: { type: string } } }
 *     responses:
 *       200: { description: The notes, content: { application/json: { schema: { type: array, items: { $ref: '#/components/schemas/Note' } } } } }
 *   post:
 *     summary: Add a note
 *     requestBody: { required: true, content: { application/json: { schema: { $ref: '#/components/schemas/NewNote' } } } }
 *     responses:
 *       201: { description: The note, content: { application/json: { schema: { $ref: '#/components/schemas/Note' } } } }
 */
app.get('/notes', ({ query }, response) => {
  const wanted = [query.tag ?? []].flat();
  response.json([...notes.values()].filter(({ tags }) => wanted.every(tag => tags.includes(tag))));
});
app.post('/notes', ({ body }, response) => {
  const note = { tags: [], ...body, id: notes.size + 1 };
  notes.set(note.id, note);
  response.status(201).json(note);
});

/**
 * @openapi
 * /notes/{id}:
 *   parameters: [{ $ref: '#/components/parameters/id' }]
 *   get:
 *     summary: Read a note
 *     responses:
 *       200: { description: The note, content: { application/json: { schema: { $ref: '#/components/schemas/Note' } } } }
 *   put:
 *     summary: Replace a note
 *     requestBody: { required: true, content: { application/json: { schema: { $ref: '#/components/schemas/NewNote' } } } }
 *     responses:
 *       200: { description: The note, content: { application/json: { schema: { $ref: '#/components/schemas/Note' } } } }
 *   patch:
 *     summary: Change a note
 *     requestBody: { required: true, content: { application/json: { schema: { type: object, properties: { text: { type: string } } } } } }
 *     responses:
 *       200: { description: The note, content: { application/json: { schema: { $ref: '#/components/schemas/Note' } } } }
 *   delete:
 *     summary: Remove a note
 *     responses:
 *       204: { description: It is gone }
 */
app
  .route('/notes/:id')
  .all(({ params }, response, next) => {
    response.locals.note = notes.get(Number(params.id));
    if (response.locals.note) next();
    else response.status(404).json({ error: 'no such note' });
  })
  .get((_request, response) => response.json(response.locals.note))
  .put(({ body }, response) => response.json({ ...body, id: response.locals.note.id }))
  .patch(({ body }, response) => response.json(Object.assign(response.locals.note, body)))
  .delete((_request, response) => response.status(204).end());

/**
 * @openapi
 * /words:
 *   post:
 *     summary: Count words
 *     requestBody: { required: true, content: { application/x-www-form-urlencoded: { schema: { type: object, required: [text], properties: { text: { type: string, example: one two } } } } } }
 *     responses:
 *       200: { description: How many, content: { application/json: { schema: { type: object, properties: { words: { type: integer } } } } } }
 * /greeting:
 *   get:
 *     summary: Say hello
 *     parameters:
 *       - { name: X-Language, in: header, required: true, schema: { type: string, enum: [en, de] } }
 *     responses:
 *       200: { description: A greeting, content: { text/plain: { schema: { type: string } } } }
 */
app.post('/words', ({ body }, response) => response.json({ words: body.text.split(/\s+/).length }));
app.get('/greeting', (request, response) =>
  response.type('text').send(request.get('x-language') === 'de' ? 'Moin' : 'Hello'),
);

app.listen(Number(process.env.PORT), '127.0.0.1');
