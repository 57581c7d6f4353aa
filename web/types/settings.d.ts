// settings.js, which web/build.py writes from the numbers of the Python package.

declare const settings: {
  endpoint: Record<string, any>;
  limits: Record<string, number>;
  unlike: number;
  max_word_bytes: number;
};
export default settings;
