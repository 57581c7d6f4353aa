// settings.js, which web/build.py writes from the numbers of the Python package.

declare const settings: {
  limits: Record<string, number>;
  max_word_bytes: number;
};
export default settings;
