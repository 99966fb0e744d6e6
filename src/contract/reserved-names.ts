/** The path of the server's MCP endpoint. */
export const MCP_PATH = '/mcp';
/** The path of the API reference, unless the contract uses it. */
export const REFERENCE_PATH = '/docs';
/** The path of the guides' index, and the prefix of their addresses. */
export const GUIDES_PATH = '/docs/guides';
/** The MCP tool that fetches an answer by its key. */
export const PICK_UP = 'pick_up';
