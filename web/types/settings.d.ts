// settings.js, which web/build.py writes from the numbers of the Python package.

declare const settings: {
  endpoint: Record<string, any>;
  limits: Record<string, number>;
  unlike: number;
};
export default settings;
