const FAILED = ['400', '402', '502', '503']
  .map(status => `'${status}': { $ref: '#/components/responses/Failed' }`)
  .join('\n        ');

/**
 * A contract with more kinds of operations than a real shop has: all methods, parameters in path and query, JSON, text
 * and binary answers, references, recursive schemas.
 */
export const ANY_SHOP = `
openapi: 3.1.0
info: { title: Any shop, version: 1.0.0 }
paths:
  /quotes/{symbol}:
    parameters:
      - { name: symbol, in: path, required: true, schema: { $ref: '#/components/schemas/Symbol' }, example: SOL }
    get:
      operationId: quote
      tags: [Markets, Figures]
      summary: Price of a symbol
      x-price: &authorization { mode: fixed, currency: USD, amount: '0.002', flow: authorization }
      parameters:
        - { name: days, in: query, schema: { type: integer, minimum: 1, maximum: 30, default: 7 } }
        - { name: kind, in: query, schema: { enum: [spot, future] }, example: spot }
        - { name: tag, in: query, schema: { type: array, items: { type: string, maxLength: 5 }, maxItems: 3 } }
        - { name: exact, in: query, schema: { type: boolean } }
        - { name: limit, in: query, schema: { anyOf: [{ type: integer }, { const: all }] } }
        - { name: x402Version, in: query, schema: { type: string } }
      responses:
        '200': { description: The price., content: { application/json: { schema: { $ref: '#/components/schemas/Quote' } } } }
        ${FAILED}
  /quotes/latest:
    get:
      operationId: latest
      summary: The latest price
      x-price: *authorization
      responses:
        '200': { description: Text., content: { text/plain: { schema: { type: string, maxLength: 20 }, example: 1.25 USD } } }
        ${FAILED}
  /trees/{id}.json:
    post:
      operationId: growTree
      tags: [Trees]
      summary: A tree that grew
      x-price: &upfront { mode: fixed, currency: USD, amount: '1.5', flow: upfront }
      parameters: [{ name: id, in: path, required: true, schema: { type: integer }, example: 7 }]
      requestBody:
        required: true
        content: { application/json: { schema: { $ref: '#/components/schemas/Tree' }, example: { name: root, kids: [{ name: leaf }] } } }
      responses:
        '200': { description: The tree., content: { application/json: { schema: { $ref: '#/components/schemas/Tree' } } } }
        ${FAILED}
  /print:
    post:
      operationId: print
      tags: [Trees]
      summary: A picture
      x-price: *upfront
      requestBody:
        content:
          application/json:
            schema:
              allOf:
                - { type: object, required: [width], properties: { width: { type: integer, maximum: 100 } } }
                - { properties: { colour: { anyOf: [{ enum: [red, blue] }, { type: string, pattern: '^#' }] } } }
            example: { width: 3, colour: red }
      responses:
        '200': { description: The picture., content: { image/png: {}, image/jpeg: {} } }
        ${FAILED}
  /woods/{id}:
    put:
      operationId: replaceTree
      tags: [Woods]
      summary: A tree in place of another
      x-price: *authorization
      parameters: [{ name: id, in: path, required: true, schema: { type: integer }, example: 7 }]
      requestBody:
        required: true
        content: { application/json: { schema: { $ref: '#/components/schemas/Tree' }, example: { name: root } } }
      responses:
        '200': { description: The tree., content: { application/json: { schema: { $ref: '#/components/schemas/Tree' } } } }
        ${FAILED}
    delete:
      operationId: fellTree
      tags: [Woods]
      summary: A tree less
      x-price: *authorization
      parameters:
        - { name: id, in: path, required: true, schema: { type: integer }, example: 7 }
        - { name: roots, in: query, schema: { type: boolean, default: false } }
        - { name: axe, in: query, schema: { type: array, items: { type: integer } } }
        - { name: comma, in: query, explode: false, schema: { type: array, items: { type: integer }, maxItems: 3 } }
        - { name: space, in: query, style: spaceDelimited, explode: false, schema: { type: array, items: { type: string } } }
        - { name: pipe, in: query, style: pipeDelimited, explode: false, schema: { anyOf: [{ type: array, items: { type: boolean } }, { type: 'null' }] } }
        - { name: pairs, in: query, explode: false, schema: { type: object, properties: { w: { type: integer }, h: { type: integer } }, additionalProperties: false } }
        - { name: size, in: query, schema: { $ref: '#/components/schemas/Size' } }
        - { name: deep, in: query, style: deepObject, schema: { anyOf: [{ type: object, properties: { gte: { type: integer }, in: { type: array, items: { type: integer } } }, additionalProperties: false }, { type: integer }] } }
        - { name: free, in: query, style: deepObject, schema: { type: object, additionalProperties: { type: string, maxLength: 3 } } }
        - { name: expand, in: query, style: deepObject, schema: { type: array, items: { type: string } } }
        - { name: X-Region, in: header, schema: { enum: [eu, us] } }
        - { name: X-Axes, in: header, schema: { type: array, items: { type: integer }, maxItems: 3 } }
        - { name: Accept, in: header, schema: { type: string } }
      responses:
        '200': { description: What is left., content: { application/json: { schema: { $ref: '#/components/schemas/Tree' } } } }
        ${FAILED}
    patch:
      operationId: pruneTree
      tags: [Woods]
      summary: A tree that was pruned
      x-price: *authorization
      parameters: [{ name: id, in: path, required: true, schema: { type: integer }, example: 7 }]
      requestBody:
        content: { application/json: { schema: { type: object, properties: { twigs: { type: integer } } }, example: { twigs: 2 } } }
      responses:
        '200': { description: The tree., content: { application/json: { schema: { $ref: '#/components/schemas/Tree' } } } }
        ${FAILED}
  /woods:
    delete:
      operationId: recall
      tags: [Woods]
      summary: Trees that were taken back
      x-price: *authorization
      requestBody:
        required: true
        content: { application/json: { schema: { type: object, required: [ids], properties: { ids: { type: array, maxItems: 9, items: { type: integer } } } }, example: { ids: [1] } } }
      responses:
        '200': { description: How many., content: { application/json: { schema: { type: object } , example: { taken: 1 } } } }
        ${FAILED}
  /saplings:
    post:
      operationId: orderSaplings
      tags: [Woods]
      summary: Saplings
      x-price: *authorization
      requestBody: { $ref: '#/components/requestBodies/Saplings' }
      responses:
        '200': { description: How many., content: { application/json: { schema: { type: object }, example: { ordered: 2 } } } }
        ${FAILED}
  /.well-known/x402: { get: { operationId: getDiscovery, responses: { '200': { description: All. } } } }
  /trees/.well-known/x402:
    get: { operationId: treesForSale, x-discovery: { tags: [Trees], operations: [latest] }, responses: { '200': { description: Some. } } }
  /markets/health:
    get: { operationId: marketsHealth, x-health: { tags: [Figures] }, responses: { '200': { description: Health. } } }
components:
  requestBodies:
    Saplings:
      required: true
      content:
        application/x-www-form-urlencoded:
          schema:
            type: object
            required: [kind]
            additionalProperties: false
            properties:
              kind: { type: string, maxLength: 10 }
              count: { type: integer, default: 1, maximum: 9 }
              tags: { type: array, items: { type: string } }
              sizes: { type: array, items: { type: number } }
              place: { type: object, properties: { row: { type: integer } } }
          encoding: { sizes: { explode: false } }
          example: { kind: oak, count: 2, tags: [a b, c], sizes: [1, 2.5], place: { row: 3 } }
  responses:
    Failed: { description: Failed., content: { application/json: { schema: { $ref: '#/components/schemas/Fault' } } } }
  schemas:
    Symbol: { type: string, minLength: 1, maxLength: 10, pattern: '^[A-Z./ ]+$' }
    Quote: { type: object, required: [price], properties: { price: { type: number } }, example: { price: 1.25 } }
    Size: { type: object, required: [width], properties: { width: { type: integer }, colours: { type: array, items: { type: string } } } }
    Fault: { type: object, required: [error], properties: { error: { type: string } } }
    Tree:
      type: object
      required: [name]
      properties: { name: { type: string, maxLength: 20 }, kids: { type: array, items: { $ref: '#/components/schemas/Tree' } } }
`;
