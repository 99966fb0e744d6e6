import * as library from 'ai-sdk-mcp-1';
import * as stdio from 'ai-sdk-mcp-1/mcp-stdio';
import { examineAiSdk } from './ai-sdk.js';

await examineAiSdk(library, stdio);
