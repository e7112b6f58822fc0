--- A read-only page: lines, highlights, and the source that <CR> opens from a line. Shown in a float or a split.

local M = {}

local NAMESPACE = vim.api.nvim_create_namespace('nexus')
local WIDEST = 110 -- columns

---@class nexus.Page
---@field folder string that the page is about
---@field width integer columns that its lines may take
---@field lines string[]
---@field groups table<integer, string> line → highlight group
---@field notes table<integer, string> line → text shown at its right
---@field targets table<integer, lsp.Location> line → where <CR> goes
---@field at? lsp.Range of the text, in the client's encoding: marked, and the cursor goes there

---@param folder string
---@return nexus.Page
function M.new(folder)
  local width = math.max(20, math.min(WIDEST, vim.o.columns - 6))
  return { folder = folder, width = width, lines = {}, groups = {}, notes = {}, targets = {} }
end

--- Append text, which may hold several lines.
---@param page nexus.Page
---@param text string
---@param group? string
---@param target? lsp.Location
function M.add(page, text, group, target)
  for _, line in ipairs(vim.split(text, '\n')) do
    table.insert(page.lines, line)
    page.groups[#page.lines] = group
    page.targets[#page.lines] = target
  end
end

--- Append a line that parts the page.
function M.rule(page, title)
  local used = vim.fn.strdisplaywidth(title) + 4
  M.add(page, '── ' .. title .. ' ' .. ('─'):rep(math.max(0, page.width - used)), 'Title')
end

local function fit(text, width, tail)
  local length = vim.fn.strchars(text)
  while vim.fn.strdisplaywidth(text) > width do
    length = length - 1
    text = tail and '…' .. vim.fn.strcharpart(text, vim.fn.strchars(text) - length + 1)
      or vim.fn.strcharpart(text, 0, length - 1) .. '…'
  end
  return text
end

local function cell(text, width, column)
  text = fit(text, width, column.tail)
  local space = (' '):rep(width - vim.fn.strdisplaywidth(text))
  return column.right and space .. text or text .. space
end

--- Append a table. The widest column is shortened where the page is too narrow, a `tail` one from its left.
---@param page nexus.Page
---@param columns {title: string, right?: boolean, tail?: boolean}[]
---@param rows {cells: string[], group?: string, target?: lsp.Location}[]
function M.table(page, columns, rows)
  local widths, total, widest = {}, 0, 1
  for index, column in ipairs(columns) do
    widths[index] = vim.fn.strdisplaywidth(column.title)
    for _, row in ipairs(rows) do
      widths[index] = math.max(widths[index], vim.fn.strdisplaywidth(row.cells[index]))
    end
    total = total + widths[index] + 2
    widest = widths[index] > widths[widest] and index or widest
  end
  widths[widest] = math.max(8, widths[widest] - math.max(0, total - 2 - page.width))
  local function line(cells)
    local texts = {}
    for index, text in ipairs(cells) do
      texts[index] = cell(text, widths[index], columns[index])
    end
    return (table.concat(texts, '  '):gsub(' +$', ''))
  end
  M.add(
    page,
    line(vim.tbl_map(function(column)
      return column.title
    end, columns)),
    'Comment'
  )
  for _, row in ipairs(rows) do
    M.add(page, line(row.cells), row.group, row.target)
  end
end

local function open_float(buffer, page, title)
  local rows = 0
  for _, line in ipairs(page.lines) do
    rows = rows + math.max(1, math.ceil(vim.fn.strdisplaywidth(line) / page.width))
  end
  local height = math.max(1, math.min(rows, vim.o.lines - 6))
  return vim.api.nvim_open_win(buffer, true, {
    relative = 'editor',
    width = page.width + 1,
    height = height,
    row = math.max(0, math.floor((vim.o.lines - height) / 2) - 1),
    col = math.floor((vim.o.columns - page.width) / 2) - 1,
    border = 'rounded',
    title = ' ' .. title .. ' ',
    footer = next(page.targets) and ' q close  Enter go to source ' or ' q close ',
    footer_pos = 'right',
  })
end

--- Mark what a page is opened for, and go there.
local function go_to(buffer, window, range, encoding)
  local function column(position)
    local line = vim.api.nvim_buf_get_lines(buffer, position.line, position.line + 1, false)[1] or ''
    return vim.str_byteindex(line, encoding, position.character, false)
  end
  local start, stop = range.start, range['end']
  vim.api.nvim_buf_set_extmark(buffer, NAMESPACE, start.line, column(start), {
    end_row = stop.line,
    end_col = column(stop),
    hl_group = 'Visual',
    priority = 250,
  })
  vim.api.nvim_win_set_cursor(window, { start.line + 1, column(start) })
end

local function decorate(buffer, page)
  for index in ipairs(page.lines) do
    if page.groups[index] then
      vim.api.nvim_buf_set_extmark(
        buffer,
        NAMESPACE,
        index - 1,
        0,
        { line_hl_group = page.groups[index], priority = 200 }
      )
    end
    if page.notes[index] then
      vim.api.nvim_buf_set_extmark(buffer, NAMESPACE, index - 1, 0, {
        virt_text = { { page.notes[index], 'Comment' } },
        virt_text_pos = 'eol_right_align',
      })
    end
  end
end

--- Show a page in a float, or in a split where the command was given `:vertical`, `:tab` or the like.
---@param page nexus.Page
---@param options {view: string, client: vim.lsp.Client, mods: table}
---@return integer buffer
function M.open(page, options)
  local name = ('nexus://%s%s'):format(options.view, page.folder)
  local stale = vim.fn.bufnr('^' .. vim.fn.escape(name, '\\*?[{,') .. '$')
  if stale > 0 then
    vim.api.nvim_buf_delete(stale, { force = true })
  end
  local buffer = vim.api.nvim_create_buf(false, true)
  vim.api.nvim_buf_set_name(buffer, name)
  vim.api.nvim_buf_set_lines(buffer, 0, -1, false, page.lines)
  vim.b[buffer].nexus_folder = page.folder
  local mods = options.mods
  local split = mods.vertical or mods.horizontal or mods.tab >= 0 or mods.split ~= ''
  local window
  if split then
    vim.cmd({ cmd = 'sbuffer', args = { tostring(buffer) }, mods = mods })
    window = vim.api.nvim_get_current_win()
  else
    window = open_float(buffer, page, ('Nexus %s: %s'):format(options.view, vim.fs.basename(page.folder)))
  end
  vim.bo[buffer].bufhidden = 'wipe'
  vim.bo[buffer].filetype = 'markdown'
  vim.bo[buffer].modifiable = false
  pcall(vim.treesitter.start, buffer, 'markdown')
  decorate(buffer, page)
  local look = {
    wrap = true,
    linebreak = true,
    number = false,
    foldcolumn = '1',
    conceallevel = 0,
    spell = false,
    fillchars = 'eob: ',
  }
  for option, value in pairs(look) do
    vim.api.nvim_set_option_value(option, value, { win = window, scope = 'local' })
  end
  if page.at then
    go_to(buffer, window, page.at, options.client.offset_encoding)
  end
  vim.keymap.set('n', 'q', '<Cmd>close<CR>', { buffer = buffer, nowait = true, desc = 'Close' })
  vim.keymap.set('n', '<CR>', function()
    local target = page.targets[vim.fn.line('.')]
    if target then
      if not split then
        vim.api.nvim_win_close(window, true)
      end
      vim.lsp.util.show_document(target, options.client.offset_encoding, { focus = true })
    end
  end, { buffer = buffer, desc = 'Go to the source of this line' })
  return buffer
end

return M
