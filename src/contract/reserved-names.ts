/** Where the server speaks MCP. */
export const MCP_PATH = '/mcp';
/** The page on which people answer questions, and everything below it. */
export const PANEL_PATH = '/panel';
/** The API reference, unless the contract has something else there. */
export const REFERENCE_PATH = '/docs';
/** The MCP tool that fetches an answer by its key. */
export const PICK_UP = 'pick_up';
