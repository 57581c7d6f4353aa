import js from '@eslint/js';
import globals from 'globals';

export default [
  {ignores: ['build/', '.venv/', 'docs/', 'examples/']},
  js.configs.recommended,
  {
    languageOptions: {globals: globals.browser},
    rules: {
      eqeqeq: 'error',
      // French has a no-break space before : ; ? ! and inside « ».
      'no-irregular-whitespace': ['error', {skipTemplates: true}],
      'no-shadow': 'error',
      'no-use-before-define': ['error', {functions: false, classes: false, variables: false}],
      'no-var': 'error',
      'object-shorthand': 'error',
      'prefer-const': 'error',
    },
  },
  {files: ['**/capture.js'], languageOptions: {globals: globals.audioWorklet}},
  {files: ['**/worker.js'], languageOptions: {globals: globals.worker}},
  {files: ['site/try/offline.js'], languageOptions: {globals: {...globals.serviceworker, FILES: 'readonly', VERSION: 'readonly'}}},
];
