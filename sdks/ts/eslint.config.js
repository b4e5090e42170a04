import tseslint from "typescript-eslint";

export default tseslint.config(
  { ignores: ["**/dist/", "build.mjs"] },
  {
    files: ["**/*.ts"],
    extends: [tseslint.configs.strictTypeChecked, tseslint.configs.stylisticTypeChecked],
    languageOptions: {
      parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname },
    },
    rules: {
      // Numbers print as expected; the rule is for objects and undefined.
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true }],
      "no-console": "error",
    },
  },
  {
    files: ["**/*.test.ts"],
    // node:test itself awaits what `test` and `describe` return.
    rules: { "@typescript-eslint/no-floating-promises": "off" },
  },
);
