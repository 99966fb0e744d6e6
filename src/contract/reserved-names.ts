/** Where the server speaks MCP. */
export const MCP_PATH = '/mcp';
/** The page on which people answer questions, and everything below it. */
export const PANEL_PATH = '/panel';
/** The MCP tool that fetches an answer by its key. */
export const PICK_UP = 'pick_up';
