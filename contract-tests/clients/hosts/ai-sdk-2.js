import * as library from '@ai-sdk/mcp';
import * as stdio from '@ai-sdk/mcp/mcp-stdio';
import { examineAiSdk } from './ai-sdk.js';

await examineAiSdk(library, stdio);
