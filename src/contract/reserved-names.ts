/** Where the server speaks MCP. */
export const MCP_PATH = '/mcp';
/** The API reference, unless the contract has something else there. */
export const REFERENCE_PATH = '/docs';
/** The MCP tool that fetches an answer by its key. */
export const PICK_UP = 'pick_up';
