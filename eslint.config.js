import js from '@eslint/js';
import regexp from 'eslint-plugin-regexp';
import tseslint from 'typescript-eslint';

export default tseslint.config(
  {
    ignores: [
      'dist*/',
      'packages/*/dist/',
      'generated/',
      '**/node_modules/',
      '.coinslot/',
      'bench/.run/',
      '**/.venv/',
      'contract-tests/clients/',
    ],
  },
  js.configs.recommended,
  ...tseslint.configs.recommendedTypeChecked,
  {
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      '@typescript-eslint/no-explicit-any': 'error',
      '@typescript-eslint/consistent-type-imports': 'error',
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_' }],
      '@typescript-eslint/restrict-template-expressions': 'off',
      '@typescript-eslint/require-await': 'off',
      'max-lines-per-function': ['error', { max: 60, skipComments: true, skipBlankLines: true }],
      complexity: ['error', 15],
      eqeqeq: 'error',
      'no-restricted-syntax': [
        'error',
        {
          selector:
            "CallExpression[callee.object.name='AbortSignal'][callee.property.name='any'] " +
            "CallExpression[callee.object.name='AbortSignal'][callee.property.name='timeout']",
          message:
            'On Node 20 this AbortSignal can be garbage-collected before it fires: use src/net/deadline.ts.',
        },
      ],
      'no-console': 'error',
    },
  },
  {
    // The regular expressions in these files are applied to untrusted text.
    files: ['src/**/*.ts', 'handlers/**/*.ts'],
    plugins: { regexp },
    rules: {
      'regexp/no-super-linear-backtracking': ['error', { report: 'potential' }],
      'regexp/no-super-linear-move': ['error', { report: 'potential', ignoreSticky: true }],
    },
  },
  {
    files: ['contract-tests/**/*.ts'],
    rules: {
      'max-lines-per-function': 'off',
      '@typescript-eslint/no-unused-expressions': 'off',
      '@typescript-eslint/no-unsafe-assignment': 'off',
      '@typescript-eslint/no-unsafe-member-access': 'off',
      '@typescript-eslint/no-unsafe-argument': 'off',
      '@typescript-eslint/no-unsafe-call': 'off',
      '@typescript-eslint/no-unsafe-return': 'off',
    },
  },
  {
    // ES5 and CommonJS, which every version of Node.js can run.
    files: ['**/*.cjs'],
    extends: [tseslint.configs.disableTypeChecked],
    languageOptions: {
      sourceType: 'commonjs',
      globals: { __dirname: 'readonly', module: 'writable', process: 'readonly', require: 'readonly' },
    },
    rules: {
      'no-var': 'off',
      '@typescript-eslint/no-require-imports': 'off',
      '@typescript-eslint/no-unused-vars': ['error', { caughtErrors: 'none' }],
    },
  },
  {
    // Code that runs in browsers. Its types are checked by src/pages/assets/tsconfig.json.
    files: ['{src,handlers}/*/assets/*.js'],
    extends: [tseslint.configs.disableTypeChecked],
    rules: {
      'max-lines-per-function': 'off',
      'no-redeclare': ['error', { builtinGlobals: false }],
      '@typescript-eslint/no-unused-vars': ['error', { varsIgnorePattern: '^(exchangeToken|drawChart)$' }],
    },
    languageOptions: {
      globals: Object.fromEntries(
        `AbortSignal addEventListener atob Blob btoa clearInterval crypto DOMParser document drawChart EventSource exchangeToken fetch
        FormData getComputedStyle getSelection history indexedDB Intl location matchMedia MutationObserver navigator ResizeObserver
        setInterval setTimeout TextDecoder TextEncoder uPlot URL URLSearchParams`
          .split(/\s+/)
          .map(name => [name, 'readonly']),
      ),
    },
  },
  {
    files: ['{src,handlers}/*/assets/*.js'],
    ignores: ['src/site/assets/*.js'],
    languageOptions: { sourceType: 'script' },
  },
  {
    files: ['**/*.js'],
    ignores: ['{src,handlers}/*/assets/*.js'],
    extends: [tseslint.configs.disableTypeChecked],
    languageOptions: {
      globals: {
        AbortController: 'readonly',
        Buffer: 'readonly',
        clearTimeout: 'readonly',
        fetch: 'readonly',
        setTimeout: 'readonly',
        URL: 'readonly',
      },
    },
  },
);
