/** Where the server speaks MCP. */
export const MCP_PATH = '/mcp';
/** The API reference, unless the contract has something else there. */
export const REFERENCE_PATH = '/docs';
/** The index of the guides, and what their addresses begin with. */
export const GUIDES_PATH = '/docs/guides';
/** The MCP tool that fetches an answer by its key. */
export const PICK_UP = 'pick_up';
