--- How figures and places read.

local M = {}

--- 1045576 → 1,045,576
function M.grouped(number)
  local text = ('%d'):format(number):reverse():gsub('(%d%d%d)', '%1,'):reverse()
  return (text:gsub('^,', ''))
end

function M.plural(count, noun)
  return ('%s %s%s'):format(M.grouped(count), noun, count == 1 and '' or 's')
end

--- Relative inside the folder, else from the home directory or the root.
function M.short_path(uri, folder)
  local path = vim.fs.normalize(vim.uri_to_fname(uri))
  return vim.fs.relpath(folder, path) or vim.fn.fnamemodify(path, ':~')
end

return M
